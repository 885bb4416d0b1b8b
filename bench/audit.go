package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Who is who in the audit log, by user agent.
const (
	theWorker  = "drydock-worker"
	theKubectl = "kubectl"
	// bareAgent are the loops of the bench itself, to compare with.
	bareAgent = "bench-bare"
)

// auditDelay is how much later than its answer a request may be on record.
const auditDelay = 300 * time.Millisecond

// request is what the audit log tells of an answered request.
type request struct {
	Verb, UserAgent, Stage   string
	RequestReceivedTimestamp time.Time
	ObjectRef                struct{ Resource, Subresource string }
	ResponseStatus           struct{ Code int }
}

func (r request) by(agent string) bool { return strings.HasPrefix(r.UserAgent, agent) }

func (r request) onEvents() bool { return r.ObjectRef.Resource == "events" }

func (r request) writes() bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete"
}

func (r request) evicts() bool {
	return r.Verb == "create" && r.ObjectRef.Resource == "pods" && r.ObjectRef.Subresource == "eviction"
}

// auditMark is the place in the audit log behind all that has happened so far.
func (b *bench) auditMark() (int64, error) {
	time.Sleep(auditDelay)
	info, err := os.Stat(b.audit)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// audited calls visit for each answered request since a mark.
func (b *bench) audited(since int64, visit func(request)) error {
	end, err := b.auditMark()
	if err != nil {
		return err
	}
	if end < since {
		return errors.New("the audit log was rotated")
	}
	file, err := os.Open(b.audit)
	if err != nil {
		return err
	}
	defer file.Close()
	// The first and the last line may be there in part.
	scanner := bufio.NewScanner(io.NewSectionReader(file, since, end-since))
	scanner.Buffer(nil, 1<<20)
	var broken []byte
	for first := true; scanner.Scan(); first = false {
		if broken != nil {
			return fmt.Errorf("the audit log has a line that is no JSON: %.100q", broken)
		}
		var r request
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			if !first {
				broken = bytes.Clone(scanner.Bytes())
			}
			continue
		}
		if r.Stage == "ResponseComplete" {
			visit(r)
		}
	}
	return scanner.Err()
}

// requests counts an agent's requests since a mark, watches apart; events are counted on their own.
func (b *bench) requests(agent string, since int64) (others, events int, err error) {
	err = b.audited(since, func(r request) {
		switch {
		case !r.by(agent) || r.Verb == "watch":
		case r.onEvents():
			events++
		default:
			others++
		}
	})
	return others, events, err
}
