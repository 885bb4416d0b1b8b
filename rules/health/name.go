package health

import (
	"fmt"
	"regexp"
)

// MaxName is how long the name of a check may be: it becomes a part of workflow IDs, lease holders and requestors' names.
const MaxName = 40

var checkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName checks the name of a health check.
func CheckName(name string) error {
	if !checkName.MatchString(name) {
		return fmt.Errorf("%.60q is not the name of a health check: want lower-case letters, digits and '-', at most %d, a letter or digit at both ends", name, MaxName)
	}
	return nil
}
