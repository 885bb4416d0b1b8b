// Package secret is where the configuration says that a secret is, and how secrets are kept out of what people see.
package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// Hidden stands for a secret wherever one would be shown.
const Hidden = "(secret)"

// maxSize bounds what is read of a file, in bytes.
const maxSize = 64 << 10

// Value says where a secret is: exactly one of a file and an environment variable. It never holds the secret, and prints,
// marshals and logs as Hidden.
type Value struct {
	// File is the path of a file with the secret; newlines at its end do not count.
	File string `json:"file,omitempty"`
	// Env is the name of an environment variable of the worker that has the secret.
	Env string `json:"env,omitempty"`

	// malformed is set by what is no place of a secret; Validate can name the field, a decoder cannot.
	malformed bool
}

// UnmarshalJSON reads {"file": ...} or {"env": ...}. What is wrong shows in Validate, without the text: somebody may have
// written the secret itself.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = Value{}
	type fields Value // without this method
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*fields)(v)); err != nil || *v == (Value{}) {
		*v = Value{malformed: true}
	}
	return nil
}

// IsZero says that no secret is configured. One that is written without a place is configured, and wrong.
func (v Value) IsZero() bool { return v == Value{} }

// Equal reports whether both are read from the same place.
func (v Value) Equal(other Value) bool { return v == other }

// Validate checks that there is one place. It does not look there.
func (v Value) Validate() error {
	if v.malformed || (v.File == "") == (v.Env == "") {
		return errors.New("want {file: <path>} or {env: <name>}; a secret is never written into the configuration itself")
	}
	return nil
}

// Read reads the secret, each time, so that a rotated one counts without a restart. Errors: it is not there, is empty,
// or has more than 64 KiB; they name the file or the variable, never the secret.
func (v Value) Read() (string, error) {
	if v.File == "" {
		if value := trimmed(os.Getenv(v.Env)); value != "" {
			return value, nil
		}
		return "", fmt.Errorf("environment variable %s is not set or empty: set it for the worker", v.Env)
	}
	file, err := os.Open(v.File)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	value := trimmed(string(data))
	switch {
	case len(data) > maxSize:
		return "", fmt.Errorf("the secret file %s has more than %d bytes", v.File, maxSize)
	case value == "":
		return "", fmt.Errorf("the secret file %s is empty", v.File)
	}
	return value, nil
}

// trimmed is a text without the newlines that editors leave at the end.
func trimmed(text string) string { return strings.TrimRight(text, "\r\n") }

// String hides even where the secret is.
func (Value) String() string { return Hidden }

// GoString hides the secret from %#v.
func (Value) GoString() string { return Hidden }

// MarshalJSON hides the secret from a dump of the configuration.
func (Value) MarshalJSON() ([]byte, error) { return json.Marshal(Hidden) }

// LogValue hides the secret from structured logs.
func (Value) LogValue() slog.Value { return slog.StringValue(Hidden) }
