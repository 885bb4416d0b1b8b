package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/conf"
)

// File is a configuration of profiles, which is read at every look. A bad one leaves the last good one in force.
type File struct {
	Path        string
	Environment rules.Environment

	mu      sync.Mutex
	read    bool
	text    []byte
	config  *rules.Config
	problem string
}

// Read is the configuration in force, nil if there was no good one, and why the file as it stands is not in force.
func (f *File) Read() (config *rules.Config, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := readUpTo(f.Path, conf.MaxFile)
	switch {
	case err != nil:
		f.read, f.problem = false, bounds.Cut(fmt.Sprintf("profiles.file: %s", err), bounds.Text)
	case f.read && bytes.Equal(text, f.text):
	default:
		f.read, f.text, f.problem = true, text, ""
		config, err := rules.Load(text, f.Environment)
		if err != nil {
			f.problem = bounds.Cut(strings.ReplaceAll(err.Error(), "\n", "; "), bounds.Text)
			break
		}
		f.config = config
	}
	return f.config, f.problem
}

func readUpTo(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, nil
}
