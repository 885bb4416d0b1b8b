package file

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"drydock.dev/drydock/rules/record"
)

// looks is how often Verify reads files that are rotated while it reads them.
const looks = 3

// Verify checks the records of a file sink, in the file and in the rotated ones next to it, with keys, of which each
// record has to be proven by one; no keys prove nothing.
func Verify(path string, keys [][]byte, expected ...record.Expected) (record.Verdict, error) {
	for range looks {
		before, err := rotatedFiles(path)
		if err != nil {
			return record.Verdict{}, err
		}
		v := record.NewVerifier(keys...)
		if err := verifyAll(v, path, before); err != nil {
			return record.Verdict{}, err
		}
		after, err := rotatedFiles(path)
		if err != nil {
			return record.Verdict{}, err
		}
		if slices.Equal(before, after) {
			return v.Verdict(expected...), nil
		}
	}
	return record.Verdict{}, fmt.Errorf("%s is rotated again and again while it is read: try again", path)
}

func verifyAll(v *record.Verifier, path string, rotated []string) error {
	take := func(l line) { v.Line(l.file, l.number, l.text) }
	for _, file := range rotated {
		if err := damageTo(v, scanRotated(file, take)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := damageTo(v, scan(path, take))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(rotated) > 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no audit records: there is no file %s, nor a rotated one beside it", path)
	}
	return err
}

// damageTo passes what cannot be read on to a verifier, and returns any other error.
func damageTo(v *record.Verifier, err error) error {
	var damage DamageReport
	if !errors.As(err, &damage) {
		return err
	}
	for _, d := range damage {
		v.Damaged(d.File, d.Line, d.Err)
	}
	return nil
}
