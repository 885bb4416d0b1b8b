package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Amount is a number of nodes, a percentage of some total of nodes, or unlimited. The zero Amount is none of the
// three: it says that nothing was set. Two Amounts are equal under == exactly if they are written alike, so 1 of
// 10 nodes is not equal to 10%.
type Amount struct {
	kind  kind
	value int
}

type kind uint8

const (
	unset kind = iota
	count
	percent
	unlimited
)

const unlimitedText = "unlimited"

// accepted ends every error about an amount. Some limits can be unlimited too, which says who reads one of those.
const accepted = `want a whole number such as 3, or a percentage from 0% to 100%`

// Count is n nodes. Limits.Validate refuses a negative one.
func Count(n int) Amount { return Amount{kind: count, value: n} }

// Percent is p percent of the nodes. Limits.Validate refuses one outside 0 to 100.
func Percent(p int) Amount { return Amount{kind: percent, value: p} }

// Unlimited is more than any number of nodes.
func Unlimited() Amount { return Amount{kind: unlimited} }

// ParseAmount reads "3", "20%" or "unlimited". The error says what is wrong and what is accepted.
func ParseAmount(s string) (Amount, error) {
	if s == "" {
		return Amount{}, errors.New("an empty amount is refused: " + accepted)
	}
	if s == unlimitedText {
		return Unlimited(), nil
	}
	digits, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return Amount{}, fmt.Errorf("%.40q is out of range: %s", s, accepted)
	case err != nil && isFraction(digits):
		return Amount{}, fmt.Errorf("%.40q is not a whole number: %s", s, accepted)
	case err != nil, digits[0] == '+':
		return Amount{}, fmt.Errorf("%.40q is not an amount: %s", s, accepted)
	case digits[0] == '-':
		return Amount{}, fmt.Errorf("%.40q is negative: %s", s, accepted)
	}
	a := Count(n)
	if isPercent {
		a = Percent(n)
	}
	if err := a.validate(); err != nil {
		return Amount{}, err
	}
	return a, nil
}

// isFraction reports whether the text is a number that is not written as a whole one, such as 1.5 or 1e3.
func isFraction(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.ContainsAny(s, ".eE")
}

// validate checks what the constructors leave unchecked.
func (a Amount) validate() error {
	switch {
	case a.value < 0:
		return fmt.Errorf("%s is negative: %s", a, accepted)
	case a.kind == percent && a.value > 100:
		return fmt.Errorf("%s is more than all nodes: %s", a, accepted)
	}
	return nil
}

// IsZero reports whether nothing was set. An amount of 0 or 0% was set.
func (a Amount) IsZero() bool { return a.kind == unset }

// Equal is ==, for comparers that look for a method.
func (a Amount) Equal(b Amount) bool { return a == b }

// Of resolves the amount to a number of nodes, total being what a percentage is of. Percentages round up, so that
// a small percentage of few nodes still lets one go. Unlimited and unset are math.MaxInt.
func (a Amount) Of(total int) int {
	switch a.kind {
	case count:
		return a.value
	case percent:
		// Split in hundreds, so that no total overflows.
		return total/100*a.value + (total%100*a.value+99)/100
	default:
		return math.MaxInt
	}
}

// atLeast is the least amount, written as this one is, that is so many nodes of the total.
func (a Amount) atLeast(nodes, total int) Amount {
	if a.kind == percent && nodes <= total {
		return Percent((nodes-1)*100/total + 1)
	}
	return Count(nodes)
}

// String is what ParseAmount reads; empty if nothing was set.
func (a Amount) String() string {
	switch a.kind {
	case count:
		return strconv.Itoa(a.value)
	case percent:
		return strconv.Itoa(a.value) + "%"
	case unlimited:
		return unlimitedText
	default:
		return ""
	}
}

// MarshalJSON writes a number as a JSON number and the others as strings. An unset amount is null, which
// UnmarshalJSON refuses: fields of this type are marked omitzero.
func (a Amount) MarshalJSON() ([]byte, error) {
	switch a.kind {
	case unset:
		return []byte("null"), nil
	case count:
		return strconv.AppendInt(nil, int64(a.value), 10), nil
	default:
		return json.Marshal(a.String())
	}
}

// UnmarshalJSON reads the number 3 or one of the strings "3", "20%" and "unlimited". It refuses null, because a
// limit with its value left out by mistake must not become no limit.
func (a *Amount) UnmarshalJSON(data []byte) error {
	text := string(data)
	switch {
	case text == "null":
		return errors.New("null is refused: leave the field out, or " + accepted)
	case strings.HasPrefix(text, `"`):
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	case text == "" || !strings.Contains("-0123456789", text[:1]):
		return fmt.Errorf("%.40s is refused: %s", text, accepted)
	}
	parsed, err := ParseAmount(text)
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}
