package windows

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// zoneFolders are where Go looks for time zones first (time.LoadLocation).
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// zones says which time zone data this process reads: the machine's, with its version as far as that is known, or what Go
// brings along.
func zones() string {
	folders := zoneFolders
	if own := os.Getenv("ZONEINFO"); own != "" {
		folders = append([]string{own}, folders...)
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		if version := zoneVersion(folder); version != "" {
			return "tzdata " + version
		}
		return folder
	}
	return "time/tzdata of " + runtime.Version()
}

// zoneVersion is the version that a folder of time zones states, empty if it states none.
func zoneVersion(folder string) string {
	if text, err := os.ReadFile(filepath.Join(folder, "+VERSION")); err == nil && len(text) < 40 {
		return strings.TrimSpace(string(text))
	}
	file, err := os.Open(filepath.Join(folder, "tzdata.zi"))
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	first := bufio.NewScanner(file)
	if !first.Scan() {
		return ""
	}
	version, found := strings.CutPrefix(first.Text(), "# version ")
	if !found || len(version) > 40 {
		return ""
	}
	return version
}
