package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"drydock.dev/drydock/rules/record"
)

// end is how a file ends.
type end struct {
	// last is the link of its last record that is in a chain; the zero value where there is none.
	last record.Link
	// unended: the last line has no end; torn: it is no record either.
	unended, torn bool
}

// firstLook is how much of a file's end is read first, in bytes: some records.
const firstLook = 64 << 10

// endOf reads a file's end, and makes the file where there is none.
func endOf(path string) (e end, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return e, err
	}
	for window := int64(firstLook); ; window *= 4 {
		from := max(0, size-window)
		part := make([]byte, size-from)
		if _, err := file.ReadAt(part, from); err != nil {
			return e, fmt.Errorf("reading the end of %s: %w", path, err)
		}
		var found bool
		if e, found = endOfLines(part, from == 0); found || from == 0 {
			return e, nil
		}
	}
}

// endOfLines looks at the end of a file, or at all of it where whole; found is true if an earlier part of the file would add nothing.
func endOfLines(part []byte, whole bool) (e end, found bool) {
	e.unended = part[len(part)-1] != '\n'
	lines := bytes.Split(bytes.TrimSuffix(part, []byte("\n")), []byte("\n"))
	for i := len(lines) - 1; i >= 0 && (i > 0 || whole); i-- {
		r, err := record.Decode(lines[i])
		e.torn = e.torn || err != nil && e.unended && i == len(lines)-1
		if err == nil && r.Writer != "" && r.Hash != "" {
			e.last = r.Link
			return e, true
		}
	}
	return e, false
}
