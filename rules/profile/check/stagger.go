package check

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/profile/conf"
)

func readStagger(o *conf.Object, _ Environment) Check {
	s := stagger{
		duration: o.RequiredDuration("duration", "how long one node keeps the next from passing"),
		lease:    LeaseName{Name: o.Required("leaseName", "the name of the Leases, without the number")},
		parallel: o.Int("parallel", 1),
	}
	s.lease.Namespace = o.Required("leaseNamespace", "the namespace of the Leases")
	if s.parallel < 0 || s.parallel > maxParallel {
		o.Refuse("parallel", fmt.Sprintf("write a number from 1 to %d", maxParallel), "%d is out of range", s.parallel)
		s.parallel = 0
	}
	return s
}

// maxParallel bounds the Leases of one check.
const maxParallel = 1000

// stagger holds while one of its Leases is older than it says of itself, and takes that one when a transition goes by it.
type stagger struct {
	duration time.Duration
	lease    LeaseName
	parallel int
}

// Idle reports that a check can never hold: a stagger of no Lease.
func Idle(c Check) bool {
	s, ok := c.(stagger)
	return ok && s.parallel == 0
}

func (s stagger) name(i int) LeaseName {
	return LeaseName{Namespace: s.lease.Namespace, Name: fmt.Sprintf("%s-%d", s.lease.Name, i)}
}

func (s stagger) needs(n *Needs) {
	for i := range s.parallel {
		n.Leases = append(n.Leases, s.name(i))
	}
}

// unread says why a Lease could not be read, empty if all of them were.
func (s stagger) unread(c Case) string {
	for i := range s.parallel {
		if name := s.name(i); c.View.Leases[name].Error != "" {
			return fmt.Sprintf("lease %s/%s: %s", name.Namespace, name.Name, c.View.Leases[name].Error)
		}
	}
	return ""
}

// serverNow is the time by the API server's clock: a worker whose own clock is wrong must not take a Lease that lasts.
func (c Case) serverNow() time.Time { return c.Now.Add(c.View.Ahead) }

// free is the first Lease that may be taken.
func (s stagger) free(c Case) (LeaseName, bool) {
	for i := range s.parallel {
		if l, there := c.View.Leases[s.name(i)]; !there || l.Expired(c.serverNow()) {
			return s.name(i), true
		}
	}
	return LeaseName{}, false
}

// Expired reports whether it may be taken.
func (l Lease) Expired(now time.Time) bool { return l.Error == "" && now.Sub(l.Renewed) > l.For }

// Hold is part of Check.
func (s stagger) Hold(c Case) Result {
	if why := s.unread(c); why != "" {
		return failed("%s", why)
	}
	if name, ok := s.free(c); ok {
		return Result{Holds: true}.info("lease", name.Namespace+"/"+name.Name)
	}
	r := Result{Reason: "no lease is free"}
	var holders, seconds []string
	for i := range s.parallel {
		l := c.View.Leases[s.name(i)]
		ends := l.Renewed.Add(l.For)
		if until := ends.Add(-c.View.Ahead); r.Until.IsZero() || until.Before(r.Until) {
			r.Until = until
		}
		holders = append(holders, l.Holder)
		seconds = append(seconds, fmt.Sprint(int(ends.Sub(c.serverNow()).Seconds())))
	}
	if len(holders) > 0 {
		r.Reason = "taken by " + few(holders)
	}
	return r.info("availableInSec", "["+strings.Join(seconds, " ")+"]")
}

func (s stagger) claims(c Case) []Claim {
	name, ok := s.free(c)
	if !ok {
		return nil
	}
	// A Lease counts whole seconds.
	return []Claim{{LeaseName: name, Holder: c.Node.Name, At: c.serverNow(), For: s.duration.Truncate(time.Second)}}
}
