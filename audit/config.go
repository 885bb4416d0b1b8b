package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"drydock/config/secret"
)

// Config says where audit records go; a record goes to every sink that is configured.
type Config struct {
	// Log writes records to the worker's own log, whatever its level.
	Log     bool     `json:"log,omitempty"`
	File    *File    `json:"file,omitempty"`
	Webhook *Webhook `json:"webhook,omitempty"`
}

// File is a file with one JSON document a line, which Drydock rotates itself. Each worker process wants a file of its own:
// two that rotate the same one can lose records. Readers take several files and drop what is in more than one.
type File struct {
	Path string `json:"path"`
	// MaxSizeMB is the size in megabytes beyond which a new file is begun; 0 is 100.
	MaxSizeMB int `json:"maxSizeMB,omitempty"`
	// MaxBackups and MaxAgeDays bound the rotated files that are kept; 0 keeps them all.
	MaxBackups int `json:"maxBackups,omitempty"`
	MaxAgeDays int `json:"maxAgeDays,omitempty"`
	// Compress compresses rotated files with gzip.
	Compress bool `json:"compress,omitempty"`
}

// Webhook takes each record as the body of a POST. The same record can come again; it then has the same Idempotency-Key,
// and where it is signed the same webhook-id.
type Webhook struct {
	// URL is an address and no secret: errors show it. What proves who sends goes into Headers.
	URL     string                  `json:"url"`
	Headers map[string]secret.Value `json:"headers,omitempty"`
	// Secret signs requests as Standard Webhooks has it: base64, with or without "whsec_" in front.
	Secret secret.Value `json:"secret,omitzero"`
	// CAFile has the certificates to trust instead of the system's.
	CAFile string `json:"caFile,omitempty"`
}

// defaultSizeMB is the size at which a file is rotated where none is configured.
const defaultSizeMB = 100

// Validate checks the configuration; the error joins one line per wrong field.
func (c Config) Validate() error {
	var problems []error
	if c.File != nil {
		problems = append(problems, c.File.validate()...)
	}
	if c.Webhook != nil {
		problems = append(problems, c.Webhook.validate()...)
	}
	return errors.Join(problems...)
}

func (f File) validate() []error {
	var problems []error
	switch {
	case f.Path == "":
		problems = append(problems, errors.New("file.path: is missing; name the file to write to"))
	case strings.HasSuffix(f.Path, string(filepath.Separator)):
		problems = append(problems, fmt.Errorf("file.path: %q is a folder; name a file in it", f.Path))
	case filepath.Ext(f.Path) == compressed:
		problems = append(problems, fmt.Errorf("file.path: %q: rotated files are compressed with file.compress; leave out %s", f.Path, compressed))
	}
	for _, number := range []struct {
		field string
		value int
		zero  string
	}{
		{"maxSizeMB", f.MaxSizeMB, fmt.Sprintf("%d", defaultSizeMB)}, {"maxBackups", f.MaxBackups, "no limit"}, {"maxAgeDays", f.MaxAgeDays, "no limit"},
	} {
		if number.value < 0 {
			problems = append(problems, fmt.Errorf("file.%s: %d is negative; 0 is %s", number.field, number.value, number.zero))
		}
	}
	return problems
}

func (f File) sizeMB() int { return cmp.Or(f.MaxSizeMB, defaultSizeMB) }

func (w Webhook) validate() []error {
	var problems []error
	if err := checkURL(w.URL); err != nil {
		problems = append(problems, fmt.Errorf("webhook.url: %w", err))
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		field := "webhook.headers." + name
		canonical := http.CanonicalHeaderKey(name)
		switch first, twice := seen[canonical]; {
		case !headerName.MatchString(name):
			problems = append(problems, fmt.Errorf("webhook.headers: %q is not a name of a header", name))
		case slices.Contains(ownHeaders, canonical):
			problems = append(problems, fmt.Errorf("%s: is set by Drydock; leave it out", field))
		case twice:
			problems = append(problems, fmt.Errorf("%s: is the same header as %s; leave one of them out", field, first))
		}
		seen[canonical] = name
		if err := w.Headers[name].Validate(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", field, err))
		}
	}
	if !w.Secret.IsZero() {
		if err := w.Secret.Validate(); err != nil {
			problems = append(problems, fmt.Errorf("webhook.secret: %w", err))
		}
	}
	return problems
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkURL never repeats the URL: what is wrong with it can be that it has a password in it.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is missing; name the address that takes the records")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("is not an address like https://host/path")
	case u.User != nil:
		return errors.New("has a user or password in it; put an Authorization header into webhook.headers")
	}
	return nil
}
