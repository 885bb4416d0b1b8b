package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Sealed is the record, bounded, as the next one of a chain: behind the record whose Link is given, or as the first
// where that has a Writer only. A key proves who wrote it; none proves nothing.
func (r Record) Sealed(after Link, key []byte) (Record, error) {
	r = r.Bounded()
	r.Link = Link{Writer: after.Writer, Number: after.Number + 1, Previous: after.Hash}
	line, err := r.Encode()
	if err != nil {
		return r, err
	}
	if r.Hash, err = Digest(line); err != nil {
		return r, err
	}
	if len(key) > 0 {
		r.MAC = proof(r.Hash, key)
	}
	return r, nil
}

// Digest is the SHA-256, in hexadecimal digits, of the canonical form of a record's line without its hash and mac: the
// same JSON with the fields of every object sorted and without white space. So it does not depend on how a collector
// writes the JSON that it has read, and on everything that it says.
func Digest(line []byte) (string, error) {
	object, err := parse(line)
	if err != nil {
		return "", err
	}
	delete(object, "hash")
	delete(object, "mac")
	canonical, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// proof is the MAC of a hash.
func proof(hash string, key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(hash)) // a hash.Hash never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// provenBy reports whether the writer of a record had one of the keys.
func (l Link) provenBy(keys [][]byte) bool {
	proven := false
	for _, key := range keys {
		proven = hmac.Equal([]byte(l.MAC), []byte(proof(l.Hash, key))) || proven
	}
	return proven
}

// maxDepth bounds how deep the JSON of a record nests.
const maxDepth = 100

// parse reads one JSON object and refuses what readers of JSON understand differently: a field that is there twice, and
// bytes that are no UTF-8.
func parse(line []byte) (map[string]any, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it has bytes that are no UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	value, err := parseValue(decoder, maxDepth)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the JSON object")
	}
	return object, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return nil, errors.New("it nests too deep")
	}
	switch token {
	case json.Delim('{'):
		return parseObject(decoder, depth)
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := parseValue(decoder, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

func parseObject(decoder *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		field, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no name of a field", token)
		}
		if _, twice := object[field]; twice {
			return nil, fmt.Errorf("the field %q is there twice", field)
		}
		if object[field], err = parseValue(decoder, depth-1); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}
