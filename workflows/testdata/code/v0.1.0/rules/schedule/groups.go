package schedule

import (
	"strings"
)

// GroupName is the Group.Name in a key of Grouper.Keys. Names hold no bracket, so the key has one reading.
func GroupName(key string) string {
	name, _, _ := strings.Cut(key, "[")
	return name
}
