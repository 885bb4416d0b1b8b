package conf

import (
	"encoding/json"
	"fmt"
	"slices"
)

// JSON is all that a mapping has, without some of its keys.
func (o *Object) JSON(without ...string) ([]byte, error) {
	all := map[string]any{}
	for key := range o.fields {
		if slices.Contains(without, key) {
			continue
		}
		o.asked[key] = true
		value, err := o.plain(o.fields[key], 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		all[key] = value
	}
	return json.Marshal(all)
}

// plain is a value with its references replaced all the way down. An alias of YAML that holds itself does not get here: its
// reader refuses it.
func (o *Object) plain(value any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	value, err := o.vars.resolve(value, nil)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case found:
		return string(v), nil
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			if list[i], err = o.plain(element, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[any]any:
		fields, _ := mapping(v)
		plain := make(map[string]any, len(fields))
		for key, element := range fields {
			if plain[key], err = o.plain(element, depth+1); err != nil {
				return nil, err
			}
		}
		return plain, nil
	}
	return value, nil
}
