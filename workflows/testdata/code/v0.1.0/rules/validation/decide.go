package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what one look says of each thing that must hold.
type Report struct {
	At      time.Time `json:"at"`
	Results []Result  `json:"results"`
	// AllGood: every result is OK.
	AllGood bool `json:"allGood"`
	// Refused says who declared the validation failed; empty where nobody did.
	Refused string `json:"refused,omitempty"`
}

// Result is one thing that must hold.
type Result struct {
	// Name is the field of the validation and, of a list, which entry: "conditions Ready", "checks smoke".
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Message says what was found and, where it is not OK, what is missing and what would heal it.
	Message string `json:"message,omitempty"`
}

// String is the result as a sentence.
func (r Result) String() string { return r.Name + ": " + r.Message }

// Missing are the results that are not OK.
func (r Report) Missing() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return one.OK })
}

// Summary names the first n results that are not OK and counts the others; it is empty where all are.
func (r Report) Summary(n int) string {
	missing := r.Missing()
	var texts []string
	for _, one := range missing[:min(n, len(missing))] {
		texts = append(texts, one.String())
	}
	text := strings.Join(texts, "; ")
	if more := len(missing) - len(texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
