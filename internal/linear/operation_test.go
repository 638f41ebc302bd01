package linear

import (
	"reflect"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestRecordsThatDifferInAnyFieldAreTold(t *testing.T) {
	r := storetest.Grant("job", 7)
	same := identify(r)
	told := func(name string, field reflect.Value) {
		old := reflect.ValueOf(field.Interface())
		switch v := field.Addr().Interface().(type) {
		case *time.Time:
			*v = v.Add(time.Millisecond)
		case *string:
			*v += "x"
		case *store.Kind:
			*v += "x"
		case *int:
			*v++
		case *int64:
			*v++
		default:
			t.Fatalf("%s is a %T: teach the test to change it", name, v)
		}
		if got := identify(r); got.Sum == same.Sum {
			t.Errorf("identify() of a record whose %s = %v, was %v: the same Sum, want another", name, field.Interface(), old)
		}
		field.Set(old)
	}
	whole := reflect.ValueOf(&r).Elem()
	for i := range whole.NumField() {
		name := whole.Type().Field(i).Name
		if name != "Worker" {
			told(name, whole.Field(i))
			continue
		}
		worker := whole.Field(i)
		for j := range worker.NumField() {
			told("Worker."+worker.Type().Field(j).Name, worker.Field(j))
		}
	}
	if got := identify(r); got != same {
		t.Errorf("identify() of the record again = %v, want %v", got, same)
	}
}
