// Package renewed keeps what files say that somebody replaces while a process runs: certificates, keys and tokens.
package renewed

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"

	"drydock.dev/drydock/secret"
)

// Value is what files say. While they cannot be read, as in the middle of being replaced, what was read before counts.
type Value[T any] struct {
	read   func() (T, error)
	report func(error)

	mu      sync.Mutex
	last    T
	problem error
}

// Open reads the files for the first time, which must succeed. What is wrong with them later is reported once, and again when
// they could be read in between; report may be nil.
func Open[T any](read func() (T, error), report func(error)) (*Value[T], error) {
	if report == nil {
		report = func(error) {}
	}
	first, err := read()
	return &Value[T]{read: read, report: report, last: first}, err
}

// Get reads the files anew.
func (v *Value[T]) Get() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, err := v.read()
	if err == nil {
		v.last = now
	} else if v.problem == nil || v.problem.Error() != err.Error() {
		v.report(err)
	}
	v.problem = err
	return v.last
}

// Last is what was read last.
func (v *Value[T]) Last() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// Problem is why the files could not be read the last time, or nil.
func (v *Value[T]) Problem() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.problem
}

// Token reads a file that has a key or a token.
func Token(path string) (string, error) {
	text, err := secret.Value{File: path}.Read()
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("the secret file %s is empty", path)
	}
	return text, nil
}

// KeyPair reads a certificate and its key.
func KeyPair(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &pair, nil
}
