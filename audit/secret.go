package audit

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Secret is where a secret is: in a file or in an environment variable. It is read anew whenever it is used, so that it can
// be changed while the worker runs.
type Secret struct {
	File string `json:"file,omitempty"`
	Env  string `json:"env,omitempty"`
}

func (s Secret) validate(field string) error {
	if (s.File == "") == (s.Env == "") {
		return fmt.Errorf("%s: want either file or env, the place where the secret is", field)
	}
	return nil
}

// value reads the secret. The line's end that editors leave behind is not a part of it.
func (s Secret) value() (string, error) {
	text := os.Getenv(s.Env)
	if s.File != "" {
		data, err := os.ReadFile(s.File)
		if err != nil {
			return "", fmt.Errorf("reading the secret: %w", err)
		}
		text = strings.TrimRight(string(data), "\r\n")
	}
	switch {
	case text == "" && s.Env != "":
		return "", fmt.Errorf("environment variable %s is not set", s.Env)
	case text == "":
		return "", fmt.Errorf("the secret in file %s is empty", s.File)
	case strings.ContainsAny(text, "\r\n\x00"):
		return "", errors.New("the secret has more than one line")
	}
	return text, nil
}

const redacted = "(secret)"

// redact takes secrets out of an error's text, also where they were quoted for a URL. What it wraps is lost with it, since
// that has the text too.
func redact(err error, secrets []string) error {
	if err == nil || len(secrets) == 0 {
		return err
	}
	var pairs []string
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(fmt.Sprintf("%q", secret), `"`)} {
			if form != "" {
				pairs = append(pairs, form, redacted)
			}
		}
	}
	clean := strings.NewReplacer(pairs...).Replace(err.Error())
	if clean == err.Error() {
		return err
	}
	return errors.New(clean)
}
