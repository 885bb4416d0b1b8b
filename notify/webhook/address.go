package webhook

import (
	"encoding/json"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
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
	return outbound.CheckPlainURL(a.URL)
}

// read is the URL; one that is not secret needs no hiding.
func (a Address) read(d *notify.Delivery) (string, error) {
	if a.Secret.IsZero() {
		return a.URL, nil
	}
	return d.Secret("webhook.url", a.Secret)
}
