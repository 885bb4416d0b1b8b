package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// PackAbove is how many entries a list has at most that is written in plain JSON, which a person can read.
const PackAbove = 1000

// List is a slice that is written compressed where it is long: a server takes 2 MB a payload, and thousands of names
// are more than that.
type List[T any] []T

// MarshalJSON writes a JSON array, or a string with its compressed form.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) <= PackAbove {
		return json.Marshal([]T(l))
	}
	packed, err := Pack([]T(l))
	if err != nil {
		return nil, err
	}
	return json.Marshal(packed)
}

// UnmarshalJSON reads either form.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]T)(l))
	}
	var packed []byte
	if err := json.Unmarshal(data, &packed); err != nil {
		return err
	}
	return Unpack(packed, (*[]T)(l))
}

// Pack writes a value as compressed JSON. It is fast rather than small: workflows use it, which may not take long, and
// names have little in common that a slower one would find.
func Pack(value any) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		err = json.NewEncoder(w).Encode(value)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack reads what Pack wrote.
func Unpack(packed []byte, into any) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}
