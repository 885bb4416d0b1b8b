package file

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/record"
)

// Damage is what was not read of a file whose other records were.
type Damage struct {
	File string
	// Line counts from 1; 0 where a file as a whole ends too early.
	Line int
	// Torn: the line is the last one of the file that is written to, and a writer may have been at it.
	Torn bool
	Err  error
}

// Error names the file and the line.
func (d *Damage) Error() string {
	switch {
	case d.Line == 0:
		return fmt.Sprintf("%s: %s", d.File, d.Err)
	case d.Torn:
		return fmt.Sprintf("%s:%d: the last line is not whole: %s", d.File, d.Line, d.Err)
	}
	return fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Err)
}

// Unwrap is why it was not read.
func (d *Damage) Unwrap() error { return d.Err }

// DamageReport is the error of a file that was read with gaps.
type DamageReport []*Damage

// Error has a line for each gap.
func (r DamageReport) Error() string {
	lines := make([]string, len(r))
	for i, d := range r {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap are the gaps.
func (r DamageReport) Unwrap() []error {
	all := make([]error, len(r))
	for i, d := range r {
		all[i] = d
	}
	return all
}

// Read reads the records of a file sink, from the oldest on: those in the file and in the rotated ones next to it, compressed or not,
// without duplicates. Where the error is a DamageReport, the records are all but those in it; with any other error there are none.
func Read(path string) ([]record.Record, error) {
	// The file that is written to is read first: what is rotated meanwhile is then read twice, and not missed.
	current, damage, err := readOne(path, true)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	rotated, err := rotatedFiles(path)
	if err != nil {
		return nil, err
	}
	if missing && len(rotated) == 0 {
		return nil, fmt.Errorf("no audit records: there is no file %s, nor a rotated one beside it", path)
	}
	var (
		records []record.Record
		gaps    DamageReport
	)
	for _, file := range rotated {
		found, lost, err := readRotated(file)
		if err != nil {
			return nil, err
		}
		records, gaps = append(records, found...), append(gaps, lost...)
	}
	records, gaps = append(records, current...), append(gaps, damage...)
	if records = record.Distinct(records); len(gaps) > 0 {
		return records, gaps
	}
	return records, nil
}

const (
	compressed = ".gz"
	// lockEnding ends the name of the file that writers lock.
	lockEnding = ".lock"
	// rotatedAt is the form of the time in the name of a rotated file.
	rotatedAt = "2006-01-02T15-04-05.000"
)

// rotatedFiles are the files next to path that were rotated, the oldest first, without the ending of compressed ones.
func rotatedFiles(path string) ([]string, error) {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder + "."))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for rotated files: %w", err)
	}
	ending := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ending) + "-"
	var files []string
	for _, entry := range entries {
		rotated := strings.TrimSuffix(entry.Name(), compressed)
		at, ofOurs := strings.CutPrefix(rotated, stem)
		at, ended := strings.CutSuffix(at, ending)
		if _, err := time.Parse(rotatedAt, at); ofOurs && ended && err == nil && !entry.IsDir() {
			files = append(files, folder+rotated)
		}
	}
	// Times in this form sort as text. A file that is being compressed is there twice.
	slices.Sort(files)
	return slices.Compact(files), nil
}

// line is one line of a file.
type line struct {
	file   string
	number int
	text   []byte
	// ended: it has an end. A writer may be at one that has none.
	ended bool
}

// scanRotated reads a rotated file, and where that is compressed, or has been by now, the compressed one. While both are
// there, the compressed one is not complete yet. The error is fs.ErrNotExist where it was too old to be kept, and was
// removed since it was listed.
func scanRotated(path string, visit func(line)) error {
	err := scan(path, visit)
	if errors.Is(err, fs.ErrNotExist) {
		return scan(path+compressed, visit)
	}
	return err
}

func readRotated(path string) (records []record.Record, damage DamageReport, err error) {
	return collect(false, func(visit func(line)) error {
		err := scanRotated(path, visit)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func readOne(path string, written bool) (records []record.Record, damage DamageReport, err error) {
	return collect(written, func(visit func(line)) error { return scan(path, visit) })
}

// collect decodes the lines of a file, which may be the one that is written to.
func collect(written bool, scan func(visit func(line)) error) (records []record.Record, damage DamageReport, err error) {
	err = scan(func(l line) {
		r, wrong := record.Decode(l.text)
		if wrong != nil {
			damage = append(damage, &Damage{File: l.file, Line: l.number, Torn: written && !l.ended, Err: wrong})
			return
		}
		records = append(records, r)
	})
	var gaps DamageReport
	if errors.As(err, &gaps) {
		return records, append(damage, gaps...), nil
	}
	if err != nil {
		return nil, nil, err
	}
	return records, damage, nil
}

// scan reads the lines of a file that are not empty. Where the error is a DamageReport, the file goes on behind them, and
// cannot be decompressed.
func scan(path string, visit func(line)) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var content io.Reader = file
	packed := filepath.Ext(path) == compressed
	if packed {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return DamageReport{{File: path, Err: fmt.Errorf("it cannot be decompressed: %w", err)}}
		}
		content = unpacked
	}
	lines := bufio.NewReader(content)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if text := bytes.TrimSpace(text); len(text) > 0 {
			visit(line{file: path, number: number, text: text, ended: err == nil})
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && packed:
			return DamageReport{{File: path, Err: fmt.Errorf("it cannot be decompressed to its end: %w", err)}}
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}
