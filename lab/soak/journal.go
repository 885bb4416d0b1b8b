package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// keptPerNode and keptAll are how many of the latest entries a violation shows.
	keptPerNode = 20
	keptAll     = 30
)

// Entry is something that was done, or found.
type Entry struct {
	At       time.Time `json:"at"`
	Did      string    `json:"did"`
	Node     string    `json:"node,omitempty"`
	Workflow string    `json:"workflow,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// journal writes down what is done and what is found, a line of JSON each, so that a failure can be read.
type journal struct {
	mu         sync.Mutex
	file       *os.File
	byNode     map[string][]Entry
	all        []Entry
	counts     map[string]int
	violations []Violation
	err        error
}

func newJournal(path string) (*journal, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &journal{file: file, byNode: map[string][]Entry{}, counts: map[string]int{}}, nil
}

// did notes an action, and why it failed if it did.
func (j *journal) did(e Entry, err error) {
	e.At = time.Now()
	if err != nil {
		e.Error = short(err.Error())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[e.Did]++
	j.all = last(append(j.all, e), keptAll)
	if e.Node != "" {
		j.byNode[e.Node] = last(append(j.byNode[e.Node], e), keptPerNode)
	}
	j.write(e)
}

// violated notes what must never be, with what was done before.
func (j *journal) violated(v Violation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v.Last = append([]Entry(nil), j.all...)
	if v.Node != "" {
		v.Last = append([]Entry(nil), j.byNode[v.Node]...)
	}
	j.violations = append(j.violations, v)
	fmt.Printf("!! %s %s %s: %s\n", v.At.Format("15:04:05"), v.Rule, v.Node, v.What)
	j.write(map[string]any{"violation": v})
}

func (j *journal) write(line any) {
	data, err := json.Marshal(line)
	if err == nil {
		_, err = j.file.Write(append(data, '\n'))
	}
	j.err = errors.Join(j.err, err)
}

func (j *journal) found() []Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Violation(nil), j.violations...)
}

func (j *journal) count(did string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[did]
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.err, j.file.Close())
}

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// short keeps an answer to what a line of the journal has room for.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
