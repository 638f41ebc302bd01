package linear

import (
	"reflect"
	"testing"

	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestRecordsThatDifferInAnyFieldAreTold(t *testing.T) {
	r := storetest.Grant("job", 7)
	r.Group, r.DoneUntil, r.Attempt, r.Spared, r.Work, r.Orders, r.Done, r.Defect = "eu", r.SlotEnd, 2, 1, "report", "[]", "{}", "none"
	whole := identify(r)
	for _, part := range []reflect.Value{reflect.ValueOf(&r).Elem(), reflect.ValueOf(&r.Worker).Elem()} {
		for i := range part.NumField() {
			name, field := part.Type().Field(i).Name, part.Field(i)
			was := reflect.ValueOf(field.Interface())
			if field.SetZero(); was.IsZero() || identify(r).Sum == whole.Sum {
				t.Errorf("a record whose %s is %v, and not %v, has the same Sum", name, field, was)
			}
			field.Set(was)
		}
	}
}
