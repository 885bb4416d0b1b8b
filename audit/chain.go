package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"drydock.dev/drydock/rules/record"
)

// Chain numbers and chains what one writer sends to where it cannot be read back: its numbers begin with 1, and end with
// the process. It is safe for concurrent use; one record is sent at a time.
type Chain struct {
	key  Key
	turn chan struct{}
	last record.Link
	// unanswered is a record that may have been taken, and tries how often it was sent.
	unanswered *record.Record
	tries      int
}

// maxTries bounds how often a record without an answer is sent again before other records. Its number is used up after that, and the record
// gets a later one.
const maxTries = 10

// NewChain begins a chain.
func NewChain(key Key) *Chain {
	return &Chain{key: key, turn: make(chan struct{}, 1), last: record.Link{Writer: NewWriter()}}
}

// NewWriter is a name that no other chain has.
func NewWriter() string { return rand.Text() }

// uncertain is an error after which it is not known whether the record was taken.
type uncertain struct{ error }

func (u uncertain) Unwrap() error { return u.error }

// Uncertain marks an error after which nobody knows whether the record was taken.
func Uncertain(err error) error { return uncertain{err} }

// Write sends a record as the next one. Where it is not known whether the record before was taken, that one is sent again first, unchanged:
// a number never stands for two records.
func (c *Chain) Write(ctx context.Context, r record.Record, send func(ctx context.Context, r record.Record, line []byte) error) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if before := c.unanswered; before != nil {
		err := c.try(ctx, *before, send)
		if c.unanswered != nil {
			return fmt.Errorf("the record of %s, run %s, comes first: %w", before.WorkflowID, before.RunID, err)
		}
		if err == nil && before.WorkflowID == r.WorkflowID && before.Key() == r.Key() {
			return nil
		}
	}
	key, err := c.key.Read()
	if err != nil {
		return err
	}
	sealed, err := r.Sealed(c.last, key)
	if err != nil {
		return err
	}
	return c.try(ctx, sealed, send)
}

// try sends a sealed record. One that was refused leaves its number to the next.
func (c *Chain) try(ctx context.Context, sealed record.Record, send func(context.Context, record.Record, []byte) error) error {
	line, err := sealed.Encode()
	if err == nil {
		err = send(ctx, sealed, line)
	}
	again := errors.As(err, new(uncertain))
	if again && c.tries+1 < maxTries {
		c.unanswered, c.tries = &sealed, c.tries+1
		return err
	}
	if err == nil || again {
		c.last = sealed.Link
	}
	c.unanswered, c.tries = nil, 0
	return err
}
