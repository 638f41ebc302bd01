package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
)

const (
	// mostLine bounds a line of output, in bytes. A longer one becomes several.
	mostLine = 16 << 10
	// atOnce is how much output is passed on at once, in bytes, unless one line has more: what a pipe takes in one piece.
	atOnce = 4 << 10
	// passTime is how long the end of a run waits for its output to be passed on, so that the log and the output stay in
	// order.
	passTime = 20 * time.Millisecond
	// keepTime is passTime where the output is kept. All that could write are gone, so it is over sooner unless a reader
	// doesn't read.
	keepTime = time.Second
	// lastTime is how long the end of a job waits for its output to be passed on.
	lastTime = 2 * time.Second
	// mostCopies is how many streams of output of one job are passed on at a time: those of earlier runs wait if their reader
	// doesn't read. From then on the output of runs is lost.
	mostCopies = 16
)

var errUnread = errors.New("the output of this run is lost: nobody reads that of the runs before")

// start starts the command with its standard files. passed is to be called when it has ended.
func (j *job) start(c guard.Command) (p *guard.Process, passed func(), err error) {
	var files []*os.File // which are ours to close, once the command has them
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	var copied sync.WaitGroup
	unread := j.copies.Load() >= mostCopies
	output := func(to, also io.Writer) *os.File {
		if f, ok := to.(*os.File); also == nil && (ok || to == nil) || err != nil {
			return f
		}
		if unread {
			to = io.Discard
		}
		r, w, failed := j.pipe()
		if err = failed; err != nil {
			return nil
		}
		files = append(files, w)
		copied.Add(1)
		j.copies.Add(1)
		j.copying.Go(func() {
			defer copied.Done()
			defer j.copies.Add(-1)
			pass(to, also, r, j.Label)
		})
		return w
	}
	c.Stdout, c.Stderr, c.Stdin = output(j.Stdout, j.Output.Stdout()), output(j.Stderr, j.Output.Stderr()), j.Stdin
	if unread && len(files) > 0 {
		j.Log.OutputLost(errUnread)
	}
	if j.Input != "" && err == nil {
		var w *os.File
		if c.Stdin, w, err = j.pipe(); err == nil {
			files = append(files, c.Stdin)
			go func() {
				_, _ = io.WriteString(w, j.Input) // The command may end without reading it.
				_ = w.Close()
			}()
		}
	}
	if err == nil {
		p, err = guard.Start(c)
	}
	return p, func() {
		all, wait := make(chan struct{}), passTime
		if j.Output != nil {
			wait = keepTime
		}
		go func() {
			defer close(all)
			copied.Wait()
		}()
		select {
		case <-all:
		case <-time.After(wait):
		}
	}, err
}

// pipe is one that the user of the command may open again, as by /dev/stderr.
func (j *job) pipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err == nil && j.User != nil {
		_ = w.Chown(int(j.User.UID), -1) // Without it the command has the pipe all the same.
	}
	return r, w, err
}

// pass passes output on, and closes where it comes from. With a label it passes whole lines on, each of which begins with
// that: others write there, too. also, unless it is nil, gets the output as it comes.
func pass(to, also io.Writer, file *os.File, label string) {
	defer func() { _ = file.Close() }()
	from := io.Reader(file)
	if also != nil {
		from = io.TeeReader(file, also)
	}
	if label == "" {
		_, _ = io.Copy(to, from)
		return
	}
	lines, whole := bufio.NewReaderSize(from, mostLine), make([]byte, 0, atOnce)
	for {
		text, err := lines.ReadSlice('\n')
		if text = bytes.TrimSuffix(text, []byte{'\n'}); len(text) > 0 || err == nil {
			if len(whole)+len(label)+len(text) >= atOnce {
				_, _ = to.Write(whole) // Whoever reads may have gone: the command need not know.
				whole = whole[:0]
			}
			whole = append(append(append(whole, label...), text...), '\n')
		}
		if more, _ := lines.Peek(lines.Buffered()); bytes.IndexByte(more, '\n') < 0 {
			_, _ = to.Write(whole)
			whole = whole[:0]
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
