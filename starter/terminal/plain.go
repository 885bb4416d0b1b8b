package terminal

import (
	"reflect"
	"time"
)

var timeType = reflect.TypeFor[time.Time]()

// forPrograms is a copy of a value whose times are in UTC and whose lists are never null.
func forPrograms(value any) any {
	if value == nil {
		return nil
	}
	return plain(reflect.ValueOf(value)).Interface()
}

func plain(v reflect.Value) reflect.Value {
	if v.Type() == timeType {
		return reflect.ValueOf(v.Interface().(time.Time).UTC())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(plain(v.Elem()))
		return copied
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		copied := reflect.New(v.Type()).Elem()
		copied.Set(plain(v.Elem()))
		return copied
	case reflect.Struct:
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				copied.Field(i).Set(plain(v.Field(i)))
			}
		}
		return copied
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v // bytes are no list
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			copied.Index(i).Set(plain(v.Index(i)))
		}
		return copied
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		copied := reflect.MakeMapWithSize(v.Type(), v.Len())
		for each := v.MapRange(); each.Next(); {
			copied.SetMapIndex(each.Key(), plain(each.Value()))
		}
		return copied
	}
	return v
}
