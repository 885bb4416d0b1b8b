package world

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident reads how much memory a process has, and had at most, in MB of a million bytes.
func Resident(pid int) (now, peak float64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	found := map[string]float64{}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		key, rest, _ := strings.Cut(scanner.Text(), ":")
		if key != "VmRSS" && key != "VmHWM" {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s of process %d: %w", key, pid, err)
		}
		found[key] = kib * 1024 / 1e6
	}
	if len(found) != 2 {
		return 0, 0, errors.Join(scanner.Err(), fmt.Errorf("process %d: its status has no VmRSS and VmHWM", pid))
	}
	return found["VmRSS"], found["VmHWM"], scanner.Err()
}
