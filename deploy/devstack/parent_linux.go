package devstack

import "syscall"

// dieWithParent has a child end when the thread ends that started it.
func dieWithParent(of *syscall.SysProcAttr) { of.Pdeathsig = syscall.SIGTERM }
