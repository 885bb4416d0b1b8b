package workflowtest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// Measures are what a workflow measured, under names such as drydock_phase_duration_seconds{Ready}.
type Measures struct {
	mu sync.Mutex
	// counts are of counters and of durations, took the sums of durations.
	counts map[string]int64
	took   map[string]time.Duration
}

// Count is how often something was counted, or measured.
func (m *Measures) Count(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

// Took is the sum of what was measured.
func (m *Measures) Took(name string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.took[name]
}

func (m *Measures) add(name string, n int64, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts, m.took = map[string]int64{}, map[string]time.Duration{}
	}
	m.counts[name] += n
	m.took[name] += d
}

// Handler records Drydock's own measures, which have one tag at most beside the SDK's.
func (m *Measures) Handler() client.MetricsHandler {
	return recordingHandler{MetricsHandler: client.MetricsNopHandler, to: m}
}

type recordingHandler struct {
	client.MetricsHandler
	to *Measures
	// value is that of the latest single tag.
	value string
}

func (l recordingHandler) WithTags(tags map[string]string) client.MetricsHandler {
	l.value = ""
	if len(tags) == 1 {
		for _, value := range tags {
			l.value = value
		}
	}
	return l
}

func (l recordingHandler) name(name string) string {
	if l.value == "" {
		return name
	}
	return fmt.Sprintf("%s{%s}", name, l.value)
}

func (l recordingHandler) Counter(name string) client.MetricsCounter {
	return recordingCounter{l.to, l.name(name)}
}

func (l recordingHandler) Timer(name string) client.MetricsTimer {
	return recordingTimer{l.to, l.name(name)}
}

type recordingCounter struct {
	to   *Measures
	name string
}

func (c recordingCounter) Inc(n int64) {
	if strings.HasPrefix(c.name, "drydock_") {
		c.to.add(c.name, n, 0)
	}
}

type recordingTimer struct {
	to   *Measures
	name string
}

func (t recordingTimer) Record(d time.Duration) {
	if strings.HasPrefix(t.name, "drydock_") {
		t.to.add(t.name, 1, d)
	}
}
