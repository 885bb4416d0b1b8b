package scheduler

import (
	"slices"
)

// requestIndex finds requests without a walk over all of them: a burst of thousands would be thousands of walks. It is
// only looked up in, and never ranged over.
type requestIndex struct {
	byID map[string]indexed
	// byRun are the requests of a run: one, but for what a rebuild finds.
	byRun map[string][]string
}

type indexed struct {
	run  string
	held bool
}

func newRequestIndex() requestIndex {
	return requestIndex{byID: map[string]indexed{}, byRun: map[string][]string{}}
}

func (x requestIndex) add(id, run string, held bool) {
	if before, known := x.byID[id]; !known {
		x.byRun[run] = append(x.byRun[run], id)
	} else {
		run = before.run
	}
	x.byID[id] = indexed{run: run, held: held}
}

func (x requestIndex) remove(id string) {
	run := x.byID[id].run
	delete(x.byID, id)
	rest := slices.DeleteFunc(x.byRun[run], func(other string) bool { return other == id })
	if len(rest) == 0 {
		delete(x.byRun, run)
		return
	}
	x.byRun[run] = rest
}
