package kubernetes

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// subdomain is what Kubernetes takes for a name, and labelValue for the value of a label.
var (
	subdomain  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelValue = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)
)

func TestANameIsWrittenAsKubernetesTakesIt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		storekit.RecordName("job", 1):                  "ledger-job.9007199254740990",
		storekit.RecordName("mail-send", store.MaxSeq): "ledger-mail--send.0000000000000001",
		storekit.RecordName("Mail.Send_2-", 1):         "ledger--umail-p-usend-l2-m.9007199254740990",
		storekit.RecordName("job", 0):                  "ledger-job.0x0",
		presenceFolder + "job/0a-b.c-":                 "roster-job.id-0a--b-pc-m",
	} {
		o := parse(name)
		if got := o.name(); got != want || o.String() != name {
			t.Errorf("name(%s) = %s of %s, want %s", name, got, o, want)
		}
	}
	long := presenceFolder + strings.Repeat("A", 63) + "/" + strings.Repeat("-", 64)
	if got := parse(long).name(); len(got) != len("roster--z")+64 || parse(long).annotations()[nameAnnotation] != long {
		t.Errorf("the name of %s = %s", long, got)
	}
}

func FuzzNamesAreFitAndDifferent(f *testing.F) {
	f.Add("job", "a-x.y", "job-a", "x.y")
	f.Add("A", "a", "-ua", "a")
	f.Add("a.id-b", "c", "a", "b.id-c")
	f.Add(strings.Repeat("Z", 63), strings.Repeat(".", 64), strings.Repeat("Z", 63), strings.Repeat("-", 64))
	f.Fuzz(func(t *testing.T, typeA, idA, typeB, idB string) {
		var found []object
		for _, p := range [][2]string{{typeA, idA}, {typeB, idB}} {
			if store.CheckWorkerType(p[0]) != nil {
				return
			}
			found = append(found, parse(storekit.RecordName(p[0], 7)))
			if store.IsPresenceID(p[1]) {
				found = append(found, parse(storekit.PresenceName(p[0], p[1])))
			}
		}
		names := map[string]object{}
		for _, o := range found {
			name := o.name()
			if !subdomain.MatchString(name) || len(name) > mostName {
				t.Errorf("%s has the name %q, which Kubernetes refuses", o, name)
			}
			for _, v := range o.labels() {
				if !labelValue.MatchString(v) || len(v) > 63 {
					t.Errorf("%s has a label %q, which Kubernetes refuses", o, v)
				}
			}
			if other, taken := names[name]; taken && other != o {
				t.Errorf("%s and %s have the same name %s", o, other, name)
			}
			names[name] = o
			if got, ok := identify(o.kind, metadata{Name: name, Annotations: o.annotations()}); !ok || got != o {
				t.Errorf("identify(%s) = %+v, %v, want %+v", name, got, ok, o)
			}
		}
	})
}

func TestRecordsOfATypeAreInTheOrderOfTheNewest(t *testing.T) {
	t.Parallel()
	var names []string
	for _, seq := range []int64{store.MaxSeq, 1 << 40, 1000, 999, 2, 1} {
		names = append(names, parse(storekit.RecordName("A-b", seq)).name())
	}
	if !slices.IsSorted(names) {
		t.Errorf("the names %v aren't in order", names)
	}
}

func TestANameThatNoObjectHasIsNoObject(t *testing.T) {
	t.Parallel()
	for _, m := range []metadata{
		{Name: ""},
		{Name: "ledger-"},
		{Name: "ledger-a"},
		{Name: "other-a.1"},
		{Name: "ledger--q.1"},
		{Name: "ledger-a-.1"},
		{Name: "ledger--u.1"},
		{Name: "ledger-A.1"},
		{Name: "ledger-a--.1"},
		{Name: "roster-a.id-b", Annotations: map[string]string{nameAnnotation: "roster/a/c"}},
		{Name: "ledger-a.1", Annotations: map[string]string{nameAnnotation: "ledger/b/1"}},
	} {
		kind := kindRecord
		if strings.HasPrefix(m.Name, "roster") {
			kind = kindPresence
		}
		if o, ok := identify(kind, m); ok {
			t.Errorf("identify(%+v) = %+v, want none", m, o)
		}
	}
}
