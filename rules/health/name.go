package health

import (
	"fmt"
	"regexp"
)

// MaxName is the maximum length of a check's name: with "health-" before it, the name is that of a requestor, which has at most 63
// characters, as the value of a label has.
const MaxName = 56

var checkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,54}[a-z0-9])?$`)

// CheckName checks the name of a health check.
func CheckName(name string) error {
	if !checkName.MatchString(name) {
		return fmt.Errorf("%.60q is not the name of a health check: want lower-case letters, digits, '-' and '.', at most %d, a letter or digit at both ends", name, MaxName)
	}
	return nil
}
