package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// printMatrix prints a line for each side of each step, with a column for each kind.
func printMatrix(out io.Writer, outcomes []Outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "STEP\tWHEN")
	for _, k := range kinds {
		fmt.Fprintf(w, "\t%s", k)
	}
	fmt.Fprintln(w)
	at := map[string]Outcome{}
	for _, o := range outcomes {
		at[o.Step+string(o.When)+string(o.Kind)] = o
	}
	for _, s := range steps {
		for _, side := range []when{before, after} {
			line, any := fmt.Sprintf("%s\t%s", s.name, side), false
			for _, k := range kinds {
				text := "-"
				if o, run := at[s.name+string(side)+string(k)]; run {
					text, any = o.Outcome, true
				}
				if text == survived {
					text = "ok"
				}
				line += "\t" + text
			}
			if any {
				fmt.Fprintln(w, line)
			}
		}
	}
	return w.Flush()
}
