package world

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Misuse says why a program was called wrongly.
type Misuse string

func (m Misuse) Error() string { return string(m) }

// Main runs a program of the lab until it returns; a signal cancels its context. The exit status is 1 if the program failed, and 2 if it
// was called wrongly.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	var wrong Misuse
	if errors.As(err, &wrong) {
		os.Exit(2)
	}
	os.Exit(1)
}

// Trial is what the user of a program chooses that lets things go wrong by chance.
type Trial struct {
	Nodes int
	// Settle bounds the time that everything has to end.
	Settle time.Duration
	// Seed is what all choices follow from.
	Seed uint64
}

// Flags defines the flags of a trial with their defaults. The purpose completes the sentence that describes -settle.
func (t *Trial) Flags(nodes int, settle time.Duration, purpose string) {
	flag.IntVar(&t.Nodes, "nodes", nodes, "simulated nodes")
	flag.DurationVar(&t.Settle, "settle", settle, "how long everything may take to "+purpose)
	flag.Uint64Var(&t.Seed, "seed", 0, "what all choices follow from; 0 takes one by chance")
}

// Parse reads the command line, and chooses a seed if the user did not.
func (t *Trial) Parse() {
	flag.Parse()
	if t.Seed == 0 {
		t.Seed = uint64(rand.Uint32())
	}
}

// Dice makes the choices of one part of a run. The choices of other parts do not change them.
func Dice(seed, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }
