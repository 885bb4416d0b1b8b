package devstack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Audited is a request as the API server recorded it.
type Audited struct {
	AuditID   string `json:"auditID"`
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Name string `json:"username"`
	} `json:"user"`
	Received time.Time `json:"requestReceivedTimestamp"`
	// At is when the stage was reached.
	At     time.Time `json:"stageTimestamp"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Answered reports whether the record is of the answer, and not of an earlier stage of the same request.
func (a Audited) Answered() bool { return a.Stage == "ResponseComplete" }

// AuditEnd is the place in an audit log behind all that is on record by now.
func AuditEnd(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ReadAudit calls visit for each record since a place in an audit log whose line contains every part, so that few have to
// be decoded. A line that is cut in two by the place, or still being written, is left out.
func ReadAudit(path string, since int64, visit func(Audited), parts ...string) error {
	end, err := AuditEnd(path)
	if err != nil {
		return err
	}
	if end < since {
		return errors.New("the audit log was rotated")
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	// What comes before the place tells whether a line begins there.
	begin := max(since-1, 0)
	log := bufio.NewReader(io.NewSectionReader(file, begin, end-begin))
	if since > 0 {
		if _, err := log.ReadBytes('\n'); err != nil {
			return unlessEOF(err)
		}
	}
	for {
		line, err := log.ReadBytes('\n')
		if err != nil {
			return unlessEOF(err)
		}
		if !containsAll(line, parts) {
			continue
		}
		var a Audited
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("the audit log: %w in %.100q", err, line)
		}
		visit(a)
	}
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func containsAll(line []byte, parts []string) bool {
	for _, part := range parts {
		if !bytes.Contains(line, []byte(part)) {
			return false
		}
	}
	return true
}
