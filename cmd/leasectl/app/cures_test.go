package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// wantCure demands a failure of one line, and a line that says what to try.
func wantCure(t *testing.T, code int, problem, try string, args ...string) {
	t.Helper()
	want := output{code: code, stderr: fmt.Sprintf("leasectl: %s\ntry: %s\n", problem, try)}
	if got := leasectl(t, nil, args...); got != want {
		t.Errorf("leasectl %q = %+v\nwant %+v", args, got, want)
	}
}

func TestADirectoryIsNoLedgerAndAFileInItMayBe(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"inspect", "slots"}, {"init"}, {"backup", "--to", filepath.Join(dir, "copy.db")}} {
		wantCure(t, exit.Refused, "sqlite: open "+dir+": store refused: not a regular file",
			"name a file in the directory, such as --store sqlite:"+dir+"/leases.db", append(args, "--store", "sqlite:"+dir)...)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "leases.db")
	wantCure(t, exit.Unreachable, "sqlite: open "+below+": stat "+below+": not a directory", "name a file in a directory: "+file+" is none",
		"inspect", "slots", "--store", "sqlite:"+below)
}

// leasectl init wouldn't help.
func TestAStoreThatIsALinkIntoAMissingDirectorySaysWhichToCreate(t *testing.T) {
	dir := t.TempDir()
	link, missing := filepath.Join(dir, "leases.db"), filepath.Join(dir, "away")
	if err := os.Symlink(filepath.Join(missing, "leases.db"), link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"inspect", "slots"}, {"run", "--worker-type", "t", "--every", "1s"}} {
		args = append(args, "--store", "sqlite:"+link)
		if args[0] == "run" {
			args = append(args, "--", "true")
		}
		wantCure(t, exit.Missing, "sqlite: open "+link+": directory of the file: stat "+missing+": no such file or directory", "create the directory "+missing+" first", args...)
	}
}

func TestABackupThatCanNotBeWrittenSaysWhatToTry(t *testing.T) {
	_, storeArg := newLedger(t)
	dir := t.TempDir()
	there := filepath.Join(dir, "there.db")
	for _, path := range []string{there, filepath.Join(dir, "new.db-wal")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for to, want := range map[string][2]string{
		there:                         {there + " exists: nothing is overwritten", "another file for --to"},
		filepath.Join(dir, "new.db"):  {filepath.Join(dir, "new.db-wal") + " exists, and would be read as part of the copy " + filepath.Join(dir, "new.db") + ": nothing was copied", "another file for --to, or remove " + filepath.Join(dir, "new.db-wal")},
		filepath.Join(dir, "x", "db"): {"the copy can't be written: " + filepath.Join(dir, "x", "db") + ": no such file or directory", "create the directory " + filepath.Join(dir, "x") + " first"},
	} {
		wantCure(t, exit.Failure, want[0], want[1], "backup", "--store", storeArg, "--to", to)
	}
}

func TestAnOverrideOfATypeWithoutRecordsSaysThatThereAreNone(t *testing.T) {
	_, storeArg := newLedger(t)
	wantCure(t, exit.Failure, `worker type "nope" has no record that workers go by, so there is nothing to override`, "leasectl inspect slots --worker-type nope --store "+storeArg,
		"override", "--store", storeArg, "--worker-type", "nope", "--seq", "1", "--yes")
}

func TestAURIThatCanNotBeUsedIsShownInItsForm(t *testing.T) {
	const mongo = "mongodb://HOST/DATABASE?collection=NAME, or mongodb+srv://…, as in leasectl --help"
	const cosmos = "cosmos://ACCOUNT/DATABASE/CONTAINER, as in leasectl --help"
	for uri, want := range map[string][2]string{
		"mongodb:/h":                        {"mongo: open: uri: must begin with mongodb:// or mongodb+srv://", mongo},
		"mongodb://127.0.0.1/d?collection=": {"mongo: open: uri: parameter collection is empty", mongo},
		"mongodb://127.0.0.1/a.b":           {`mongo: open: database "a.b": character '.' is not allowed`, mongo},
		"cosmos://a/b/c/d":                  {"cosmos: open: uri: the path must be /DATABASE/CONTAINER or less", cosmos},
	} {
		wantCure(t, exit.Usage, want[0], want[1], "inspect", "slots", "--store", uri)
	}
}

func TestACommandThatIsNotThereSaysWhatToTry(t *testing.T) {
	_, storeArg := newLedger(t)
	dir := t.TempDir()
	nothing := filepath.Join(dir, "nothing")
	for command, want := range map[string][2]string{
		nothing: {": stat " + nothing + ": no such file or directory", "name a file that is there, or a command in PATH without a slash"},
		dir:     {": is a directory", "name a program, such as one in that directory"},
	} {
		wantCure(t, exit.Command, fmt.Sprintf("command %q%s", command, want[0]), want[1], "run", "--store", storeArg, "--worker-type", "t", "--every", "1s", "--", command)
	}
}
