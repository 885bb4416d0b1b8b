package main

import (
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// The addresses of pods, far more than there can be pods.
var (
	firstPodIP = netip.MustParseAddr("10.244.0.1")
	lastPodIP  = netip.MustParseAddr("10.255.255.254")
)

// podIPs gives every pod an address of its own. An address that was given back
// is given out again as late as can be.
type podIPs struct {
	mu    sync.Mutex
	next  netip.Addr
	of    map[types.UID]netip.Addr
	taken map[netip.Addr]types.UID
}

func newPodIPs() *podIPs {
	return &podIPs{next: firstPodIP, of: map[types.UID]netip.Addr{}, taken: map[netip.Addr]types.UID{}}
}

// get returns the address of a pod, the same one each time.
func (p *podIPs) get(pod types.UID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ip, ok := p.of[pod]; ok {
		return ip.String()
	}
	for p.taken[p.next] != "" {
		p.advance()
	}
	ip := p.next
	p.advance()
	p.of[pod], p.taken[ip] = ip, pod
	return ip.String()
}

func (p *podIPs) advance() {
	if p.next = p.next.Next(); lastPodIP.Less(p.next) {
		p.next = firstPodIP
	}
}

// keep notes the address that a pod has already.
func (p *podIPs) keep(pod types.UID, address string) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return // none yet
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.of[pod]; !ok && p.taken[ip] == "" {
		p.of[pod], p.taken[ip] = ip, pod
	}
}

func (p *podIPs) giveBack(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ip, ok := p.of[pod]; ok {
		delete(p.of, pod)
		delete(p.taken, ip)
	}
}
