// Package file writes audit records to a file and reads them back.
package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of sink that is a file.
var Kind = sections.Kind[audit.SinkConfig]{Name: "file", Config: &Config{}}

// Config writes records to a file with one JSON document a line, which Drydock rotates itself. Each worker process wants a file of its own:
// two that rotate the same one can lose records. Readers take several files and drop what is in more than one.
type Config struct {
	// Path is that of the file, a file of its own for each worker.
	Path string `json:"path" jsonschema:"required"`
	// MaxSizeMB is the size in megabytes beyond which a new file is begun.
	MaxSizeMB int `json:"maxSizeMB,omitempty" jsonschema:"minimum=0,default=100"`
	// MaxBackups is how many rotated files are kept; 0 keeps all.
	MaxBackups int `json:"maxBackups,omitempty" jsonschema:"minimum=0,default=0"`
	// MaxAgeDays is how many days rotated files are kept; 0 is for ever.
	MaxAgeDays int `json:"maxAgeDays,omitempty" jsonschema:"minimum=0,default=0"`
	// Compress compresses rotated files with gzip: they become `.gz`.
	Compress bool `json:"compress,omitempty"`
}

// defaultSizeMB is the size at which a file is rotated where none is configured.
const defaultSizeMB = 100

func (c *Config) sizeMB() int { return cmp.Or(c.MaxSizeMB, defaultSizeMB) }

// Try looks whether the file can be written, or made where it is not there yet.
func (c *Config) Try() error {
	f, err := os.OpenFile(c.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("path: %w", err)
	}
	folder := filepath.Dir(c.Path)
	for {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder) // it is made with the file
	}
	probe, err := os.CreateTemp(folder, ".drydock-check-*")
	if err != nil {
		return fmt.Errorf("path: %q cannot be made: %w", c.Path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	switch {
	case c.Path == "":
		p.Add(field+".path", "is missing; name the file to write to")
	case strings.HasSuffix(c.Path, string(filepath.Separator)):
		p.Add(field+".path", "%q is a folder; name a file in it", c.Path)
	case filepath.Ext(c.Path) == compressed:
		p.Add(field+".path", "%q: rotated files are compressed with file.compress; leave out %s", c.Path, compressed)
	}
	if c.MaxSizeMB < 0 {
		p.Add(field+".maxSizeMB", "%d is negative; 0 is %d", c.MaxSizeMB, defaultSizeMB)
	}
	if c.MaxBackups < 0 {
		p.Add(field+".maxBackups", "%d is negative; 0 is no limit", c.MaxBackups)
	}
	if c.MaxAgeDays < 0 {
		p.Add(field+".maxAgeDays", "%d is negative; 0 is no limit", c.MaxAgeDays)
	}
}
