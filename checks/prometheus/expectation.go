package prometheus

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/checks"
)

// maxSamples bounds the samples that a message shows.
const maxSamples = 3

// expectation is exactly one of its fields.
type expectation struct {
	text            string
	empty, nonEmpty bool
	// A sample is compared with limit, by operator.
	operator string
	limit    float64
}

var comparison = regexp.MustCompile(`^(==|!=|>=|<=|>|<)\s*(\S+)$`)

func parseExpectation(text string) (expectation, error) {
	e := expectation{text: strings.TrimSpace(text)}
	switch e.text {
	case "empty":
		e.empty = true
		return e, nil
	case "nonEmpty":
		e.nonEmpty = true
		return e, nil
	}
	wrong := fmt.Errorf("%q is not one of empty, nonEmpty or a comparison such as \">= 1\"", text)
	parts := comparison.FindStringSubmatch(e.text)
	if parts == nil {
		return e, wrong
	}
	limit, err := strconv.ParseFloat(parts[2], 64)
	if err != nil || limit != limit {
		return e, wrong
	}
	e.operator, e.limit = parts[1], limit
	return e, nil
}

// holds compares a sample.
func (e expectation) holds(v float64) bool {
	switch e.operator {
	case "==":
		return v == e.limit
	case "!=":
		return v != e.limit && v == v // nothing can be said of what is not a number
	case ">=":
		return v >= e.limit
	case "<=":
		return v <= e.limit
	case ">":
		return v > e.limit
	default:
		return v < e.limit
	}
}

func (e expectation) judge(value model.Value) (checks.Verdict, error) {
	var samples model.Vector
	switch value := value.(type) {
	case model.Vector:
		samples = value
	case *model.Scalar:
		samples = model.Vector{{Value: value.Value}}
	default:
		return checks.Verdict{}, fmt.Errorf("query: gives a %s: want an instant vector or a scalar", value.Type())
	}
	switch {
	case e.empty && len(samples) == 0:
		return checks.Verdict{OK: true, Message: "the query returned nothing"}, nil
	case e.empty:
		return checks.Verdict{Message: fmt.Sprintf("the query returned %s, want nothing", shown(samples))}, nil
	case len(samples) == 0:
		return checks.Verdict{Message: "the query returned nothing, want " + e.wanted()}, nil
	case e.nonEmpty:
		return checks.Verdict{OK: true, Message: "the query returned " + shown(samples)}, nil
	}
	failing := slices.DeleteFunc(slices.Clone(samples), func(s *model.Sample) bool { return e.holds(float64(s.Value)) })
	if len(failing) > 0 {
		return checks.Verdict{Message: fmt.Sprintf("the query returned %s, want %s", shown(failing), e.wanted())}, nil
	}
	return checks.Verdict{OK: true, Message: "the query returned " + shown(samples)}, nil
}

func (e expectation) wanted() string {
	if e.nonEmpty {
		return "something"
	}
	return "all " + e.text
}

// shown is the first samples, in an order that does not change from one answer to the next.
func shown(samples model.Vector) string {
	var texts []string
	for _, s := range samples {
		if len(s.Metric) == 0 {
			texts = append(texts, s.Value.String())
		} else {
			texts = append(texts, fmt.Sprintf("%s = %s", s.Metric, s.Value))
		}
	}
	slices.Sort(texts)
	text := strings.Join(texts[:min(maxSamples, len(texts))], ", ")
	if more := len(texts) - maxSamples; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
