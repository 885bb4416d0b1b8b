package schedule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

const (
	// MaxGang is how many nodes a gang has at most: a scheduler has to stand no more requests.
	MaxGang = 15000
	// maxGangName bounds the name of a gang, in bytes.
	maxGangName = 253
)

// Gang are nodes that are taken all at once or not at all.
type Gang struct {
	// Name is that of no other gang: who asks for it makes it so.
	Name string `json:"name"`
	// Size is how many nodes have to have asked before any is granted. A gang of one is an ordinary request.
	Size int `json:"size"`
}

// Validate joins an error for everything that is wrong, each beginning with the field.
func (g Gang) Validate() error {
	var errs []error
	switch {
	case g.Name == "":
		errs = append(errs, errors.New("name: required"))
	case len(g.Name) > maxGangName:
		errs = append(errs, fmt.Errorf("name: %d bytes are more than %d", len(g.Name), maxGangName))
	case strings.ContainsFunc(g.Name, unicode.IsControl):
		errs = append(errs, fmt.Errorf("name: %q has control characters", g.Name))
	}
	if g.Size < 1 || g.Size > MaxGang {
		errs = append(errs, fmt.Errorf("size: %d: want 1 to %d nodes", g.Size, MaxGang))
	}
	return errors.Join(errs...)
}

// gang is a Gang during one decision.
type gang struct {
	name string
	// size is the largest that a member names.
	size int
	// wants are the nodes that its members ask for.
	wants map[string]bool
	// inPart: a part of it holds slots. The rest asks as single requests do.
	inPart bool
	// ranks are the places of its members among the requests, best first.
	ranks []int
	// requestors are those that it has counted for.
	requestors map[string]bool
}

// gangs are by name. They are only looked up in.
type gangs map[string]*gang

// gangsOf are the gangs of pending requests.
func gangsOf(in Input) gangs {
	var all gangs
	for i := range in.Pending {
		asked := in.Pending[i].Gang
		if asked == nil || in.Pending[i].Remediation {
			continue
		}
		if all == nil {
			all = gangs{}
		}
		g := all[asked.Name]
		if g == nil {
			g = &gang{name: asked.Name, wants: map[string]bool{}, requestors: map[string]bool{}}
			all[asked.Name] = g
		}
		g.size = max(g.size, asked.Size)
		g.wants[in.Pending[i].Node] = true
	}
	for _, granted := range in.Granted {
		if g := all[granted.Gang]; g != nil && !granted.Remediation {
			g.inPart = true
		}
	}
	return all
}

// of is the gang of a request, nil if it is one by itself: a gang of one node is no gang, unless others hold slots for it.
func (all gangs) of(r *Request) *gang {
	if r.Gang == nil || r.Remediation {
		return nil
	}
	g := all[r.Gang.Name]
	if g.inPart || g.size > 1 || g.nodes() > 1 {
		return g
	}
	return nil
}

// countsFor reports whether the gang is to be counted for a requestor, which it is once.
func (g *gang) countsFor(requestor string) bool {
	counted := g.requestors[requestor]
	g.requestors[requestor] = true
	return !counted
}

func (g *gang) nodes() int { return len(g.wants) }

// waitsForOthers reports whether not all of its nodes have asked yet.
func (g *gang) waitsForOthers() bool { return !g.inPart && g.nodes() < g.size }

// incomplete says how many nodes of the gang have asked.
func (g *gang) incomplete(nodes int) string {
	return fmt.Sprintf("gang %s goes once all of its %d nodes have asked: %d of %d so far", g.name, g.size, nodes, g.size)
}

// goesFirst says that a gang needs so many nodes more than are used of a limit.
func goesFirst(gang string, needs int, limit string, used int) string {
	return fmt.Sprintf("gang %s goes first and needs %d of %s, of which %s used", gang, needs, limit, areUsed(used))
}

func areUsed(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
