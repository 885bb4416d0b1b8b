package outbound

import (
	"errors"
	"fmt"
	"net/url"
)

// What can be wrong with a URL. None of them shows it: it may hold a credential.
var (
	ErrNotURL      = errors.New("is not a URL: want http:// or https:// and a host")
	ErrScheme      = errors.New("want http or https")
	ErrCredentials = errors.New("holds credentials")
	ErrNoHost      = errors.New("has no host")
)

// CheckURL accepts what Drydock calls: http or https, a host, and no credentials, which belong into a file or the
// environment. The error is one of the above.
func CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("has the scheme %q: %w", u.Scheme, ErrScheme)
	case u.User != nil:
		return ErrCredentials
	case u.Hostname() == "":
		return ErrNoHost
	}
	return nil
}

// ParseURL parses a URL that CheckURL accepts.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, ErrNotURL
	}
	return u, CheckURL(u)
}

// CheckPlainURL is the rule for a URL that is written where everybody sees it, and where a secret could be written
// instead: it has nothing in it that may be one.
func CheckPlainURL(text string) error {
	u, err := ParseURL(text)
	switch {
	case err != nil && !errors.Is(err, ErrCredentials):
		return errors.New("is not an http or https URL")
	case err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("has a user, a query or a fragment, which may be secret: " +
			"leave them out, or write the URL as {file: <path>} or {env: <name>} where a secret is accepted")
	}
	return nil
}

// WithoutURL is the error of a call without the URL that the standard library puts in front of it.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
