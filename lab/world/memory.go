package world

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// Resident reads how much memory a process has, and had at most, in MB of a million bytes.
func Resident(pid int) (now, peak float64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0, err
	}
	if status.VmRSS == 0 || status.VmHWM == 0 {
		return 0, 0, fmt.Errorf("process %d: its status has no VmRSS and VmHWM", pid)
	}
	return float64(status.VmRSS) / 1e6, float64(status.VmHWM) / 1e6, nil
}
