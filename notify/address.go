package notify

import (
	"encoding/json"
	"errors"
	"net/url"

	"drydock/config/secret"
)

// Address is a URL. It may be written as a plain string where it holds no credentials, that is neither a user nor a query;
// a URL that is a secret itself is written as a secret.Value.
type Address struct {
	URL    string
	Secret secret.Value
}

// UnmarshalJSON reads a string, or what secret.Value reads.
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
	return secret.Hidden
}

func (a Address) validate() error {
	if !a.Secret.IsZero() {
		return a.Secret.Validate()
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
