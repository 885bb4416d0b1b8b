package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"drydock.dev/drydock/rules/period"
)

// objects are the CEL types of Go structs: their fields have their JSON names and types, so that a name that does not
// exist is found when an expression is compiled. A field reads as its zero value where nothing is set, as in protocol
// buffers; a pointer field is absent there: has() is false, and reading it is an error.
type objects struct {
	*types.Registry
	byName map[string]*object
	byType map[reflect.Type]*object
}

// object is the CEL type of one struct.
type object struct {
	celType *types.Type
	of      reflect.Type
	names   []string
	fields  map[string]*types.FieldType
}

func newObjects() (*objects, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	o := &objects{Registry: registry, byName: map[string]*object{}, byType: map[reflect.Type]*object{}}
	for _, v := range variables {
		if _, err := o.typeOf(v.of); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return o, nil
}

var (
	durationType = reflect.TypeFor[period.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
)

// typeOf is the CEL type of a Go type; that of a struct is made at its first use.
func (o *objects) typeOf(t reflect.Type) (*types.Type, error) {
	switch t {
	case durationType:
		return types.DurationType, nil
	case timeType:
		return types.TimestampType, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return o.typeOf(t.Elem())
	case reflect.Bool:
		return types.BoolType, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return types.IntType, nil
	case reflect.String:
		return types.StringType, nil
	case reflect.Slice:
		element, err := o.typeOf(t.Elem())
		if err != nil {
			return nil, err
		}
		return types.NewListType(element), nil
	case reflect.Map:
		if t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String {
			return types.NewMapType(types.StringType, types.StringType), nil
		}
	case reflect.Struct:
		return o.structType(t)
	}
	return nil, fmt.Errorf("there is no CEL type for %s", t)
}

func (o *objects) structType(t reflect.Type) (*types.Type, error) {
	if known := o.byType[t]; known != nil {
		return known.celType, nil
	}
	made := &object{celType: types.NewObjectType(t.String()), of: t, fields: map[string]*types.FieldType{}}
	o.byType[t], o.byName[t.String()] = made, made
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			return nil, fmt.Errorf("%s.%s has no name in JSON", t, t.Field(i).Name)
		}
		fieldType, err := o.typeOf(t.Field(i).Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		made.names = append(made.names, name)
		made.fields[name] = &types.FieldType{
			Type: fieldType,
			IsSet: func(target any) bool {
				field, err := fieldOf(target, t, i)
				return err == nil && !field.IsZero()
			},
			GetFrom: func(target any) (any, error) {
				field, err := fieldOf(target, t, i)
				if err != nil {
					return nil, err
				}
				if field.Kind() == reflect.Pointer && field.IsNil() {
					return nil, fmt.Errorf("there is no %s: ask has(...) first", name)
				}
				return o.valueOf(field), nil
			},
		}
	}
	return made.celType, nil
}

func fieldOf(target any, t reflect.Type, i int) (reflect.Value, error) {
	v := reflect.Indirect(reflect.ValueOf(target))
	if !v.IsValid() || v.Type() != t {
		return reflect.Value{}, fmt.Errorf("%T is not a %s", target, t)
	}
	return v.Field(i), nil
}

// valueOf is the CEL value of a Go value of a known type.
func (o *objects) valueOf(v reflect.Value) ref.Val {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return types.NullValue
		}
		v = v.Elem()
	}
	switch v.Type() {
	case durationType:
		return types.Duration{Duration: time.Duration(v.Int())}
	case timeType:
		return types.Timestamp{Time: v.Interface().(time.Time)}
	}
	switch v.Kind() {
	case reflect.Bool:
		return types.Bool(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return types.Int(v.Int())
	case reflect.String:
		return types.String(v.String())
	case reflect.Slice:
		list := make([]ref.Val, 0, v.Len())
		for i := range v.Len() {
			list = append(list, o.valueOf(v.Index(i)))
		}
		return types.NewRefValList(o, list)
	case reflect.Map:
		texts := make(map[string]string, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			texts[entries.Key().String()] = entries.Value().String()
		}
		return types.NewStringStringMap(o, texts)
	case reflect.Struct:
		if of := o.byType[v.Type()]; of != nil {
			return &value{all: o, of: of, v: v}
		}
	}
	return types.NewErr("there is no CEL value for %s", v.Type())
}

// NativeToValue is part of types.Adapter.
func (o *objects) NativeToValue(native any) ref.Val {
	if v, ok := native.(ref.Val); ok {
		return v
	}
	if v := reflect.Indirect(reflect.ValueOf(native)); v.IsValid() && o.byType[v.Type()] != nil {
		return o.valueOf(v)
	}
	return o.Registry.NativeToValue(native)
}

// FindIdent is part of types.Provider.
func (o *objects) FindIdent(name string) (ref.Val, bool) {
	if of := o.byName[name]; of != nil {
		return of.celType, true
	}
	return o.Registry.FindIdent(name)
}

// FindStructType is part of types.Provider.
func (o *objects) FindStructType(name string) (*types.Type, bool) {
	if of := o.byName[name]; of != nil {
		return types.NewTypeTypeWithParam(of.celType), true
	}
	return o.Registry.FindStructType(name)
}

// FindStructFieldNames is part of types.Provider.
func (o *objects) FindStructFieldNames(name string) ([]string, bool) {
	if of := o.byName[name]; of != nil {
		return of.names, true
	}
	return o.Registry.FindStructFieldNames(name)
}

// FindStructFieldType is part of types.Provider.
func (o *objects) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if of := o.byName[name]; of != nil {
		found, ok := of.fields[field]
		return found, ok
	}
	return o.Registry.FindStructFieldType(name, field)
}

// NewValue is part of types.Provider. Rules judge what there is, and make none of it.
func (o *objects) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if o.byName[name] != nil {
		return types.NewErr("a %s cannot be made by an expression", name)
	}
	return o.Registry.NewValue(name, fields)
}

// value is a struct as expressions see it.
type value struct {
	all *objects
	of  *object
	v   reflect.Value
}

// ConvertToNative is part of ref.Val.
func (s *value) ConvertToNative(want reflect.Type) (any, error) {
	if want == s.of.of {
		return s.v.Interface(), nil
	}
	return nil, fmt.Errorf("a %s is not a %s", s.of.of, want)
}

// ConvertToType is part of ref.Val.
func (s *value) ConvertToType(want ref.Type) ref.Val {
	switch {
	case want == types.TypeType:
		return s.of.celType
	case want.TypeName() == s.of.celType.TypeName():
		return s
	}
	return types.NewErr("a %s is not a %s", s.of.of, want.TypeName())
}

// Equal is part of ref.Val.
func (s *value) Equal(other ref.Val) ref.Val {
	o, ok := other.(*value)
	return types.Bool(ok && reflect.DeepEqual(s.v.Interface(), o.v.Interface()))
}

// Type is part of ref.Val.
func (s *value) Type() ref.Type { return s.of.celType }

// Value is part of ref.Val.
func (s *value) Value() any { return s.v.Interface() }

// IsZeroValue is part of traits.Zeroer.
func (s *value) IsZeroValue() bool { return s.v.IsZero() }

// Get is part of traits.Indexer.
func (s *value) Get(field ref.Val) ref.Val {
	found, err := s.field(field)
	if err != nil {
		return types.WrapErr(err)
	}
	got, err := found.GetFrom(s.v.Interface())
	if err != nil {
		return types.WrapErr(err)
	}
	return s.all.NativeToValue(got)
}

// IsSet is part of traits.FieldTester.
func (s *value) IsSet(field ref.Val) ref.Val {
	found, err := s.field(field)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(found.IsSet(s.v.Interface()))
}

func (s *value) field(name ref.Val) (*types.FieldType, error) {
	text, ok := name.(types.String)
	if !ok {
		return nil, errors.New("the name of a field is a string")
	}
	found, ok := s.of.fields[string(text)]
	if !ok {
		return nil, fmt.Errorf("a %s has no field %s", s.of.of, text)
	}
	return found, nil
}
