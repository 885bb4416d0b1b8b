package maintenance

import (
	"errors"
)

// step is one part of the procedure.
type step struct {
	name string
	take func() error
}

// stepRestart is where a maintenance goes on that begins again with the slot.
const stepRestart = "restart"

// procedure is where a maintenance is in its steps. A run goes on where the run before it was.
type procedure struct {
	// at is the step that it has come to, restarting why it begins again with the slot.
	at         string
	restarting error
	// end is how it ends, once that is decided.
	end *ending
}

// goOn takes the steps from where it is. A node that was given back, or whose slot was lost, is begun again with the slot.
func (p *procedure) goOn(steps []step) error {
	for {
		err := p.take(steps)
		if !errors.Is(err, errGivenBack) && !errors.Is(err, errSlotLost) {
			return err
		}
		p.at, p.restarting = stepRestart, err
	}
}

func (p *procedure) take(steps []step) error {
	reached := p.at == ""
	for _, s := range steps {
		if reached = reached || s.name == p.at; !reached {
			continue
		}
		p.at = s.name
		if err := s.take(); err != nil {
			return err
		}
	}
	return nil
}
