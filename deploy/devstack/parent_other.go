//go:build !linux

package devstack

import "syscall"

// dieWithParent does nothing: only Linux ends the children of a parent that was killed.
func dieWithParent(*syscall.SysProcAttr) {}
