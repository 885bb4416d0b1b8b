package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Sort puts nodes into the order in which a plan takes them.
func Sort(order string, nodes []Node) {
	slices.SortStableFunc(nodes, func(a, b Node) int {
		switch order {
		case ByZone:
			return cmp.Or(CompareNames(a.Zone, b.Zone), CompareNames(a.Name, b.Name))
		case FewestPods:
			return cmp.Or(cmp.Compare(a.Pods, b.Pods), CompareNames(a.Name, b.Name))
		}
		return CompareNames(a.Name, b.Name)
	})
}

// CompareNames orders names as people count: worker-2 comes before worker-10.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
			return c
		}
		x, y = x[m:], y[n:]
	}
	// Names that count alike, such as n1 and n01, have an order all the same.
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(text string) int {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return i
		}
	}
	return len(text)
}
