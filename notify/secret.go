package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
)

const hidden = "(secret)"

// wantSource is what a secret field wants instead of the value itself.
const wantSource = "want {file: <path>} or {env: <name>}; a secret is never written into the configuration itself"

// Secret says where a secret value is: exactly one of a file and an environment variable. It never holds the value, and
// prints and marshals as "(secret)".
type Secret struct {
	// File is the path of a file with the value; newlines at its end do not count.
	File string `json:"file,omitempty"`
	// Env is the name of an environment variable.
	Env string `json:"env,omitempty"`

	// malformed is set by what was not an object with known fields; Validate can name the field, a decoder cannot.
	malformed bool
}

// UnmarshalJSON reads {"file": ...} or {"env": ...}. What is wrong shows in Validate.
func (s *Secret) UnmarshalJSON(data []byte) error {
	*s = Secret{}
	type fields Secret // without this method
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*fields)(s)); err != nil {
		*s = Secret{malformed: true}
	}
	return nil
}

// IsZero says that no secret is configured.
func (s Secret) IsZero() bool { return s == Secret{} }

// Value reads the secret, each time anew so that a rotated one counts without a restart. An error names the file or the
// variable, never the value.
func (s Secret) Value() (string, error) {
	if s.File == "" {
		value, ok := os.LookupEnv(s.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("environment variable %s is not set or empty", s.Env)
		}
		return value, nil
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		return "", fmt.Errorf("the secret file %s is empty", s.File)
	}
	return value, nil
}

func (s Secret) validate() error {
	if s.malformed || (s.File == "") == (s.Env == "") {
		return errors.New(wantSource)
	}
	return nil
}

// String hides even where the secret is.
func (s Secret) String() string { return hidden }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return hidden }

// MarshalJSON hides the secret from a dump of the configuration.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// LogValue hides the secret from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Address is a URL. It may be written as a plain string where it holds no credentials, that is neither a user nor a query;
// a URL that is a secret itself is written as a Secret.
type Address struct {
	URL    string
	Secret Secret
}

// UnmarshalJSON reads a string, or what Secret reads.
func (a *Address) UnmarshalJSON(data []byte) error {
	*a = Address{}
	if err := json.Unmarshal(data, &a.URL); err == nil {
		return nil
	}
	return a.Secret.UnmarshalJSON(data)
}

// MarshalJSON writes the URL, or hides it where it is a secret.
func (a Address) MarshalJSON() ([]byte, error) {
	if a.Secret.IsZero() {
		return json.Marshal(a.URL)
	}
	return a.Secret.MarshalJSON()
}

// IsZero says that no address is configured.
func (a Address) IsZero() bool { return a == Address{} }

// String is the URL, or "(secret)".
func (a Address) String() string {
	if a.Secret.IsZero() {
		return a.URL
	}
	return hidden
}

func (a Address) validate() error {
	if !a.Secret.IsZero() {
		return a.Secret.validate()
	}
	return checkURL(a.URL)
}

// checkURL accepts what can be shown: an error must not quote the text, which may hold a credential all the same.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("has a user, a query or a fragment, which may be secret: " +
			"leave them out, or write the URL as {file: <path>} or {env: <name>} where a secret is accepted")
	}
	return nil
}
