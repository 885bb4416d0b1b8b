package e2e
import ("fmt";"testing")
func (s *site) dump(run interface{ GetID() string; GetRunID() string }) {
	st,err := s.status(s.temporal.GetWorkflow(s.ctx, run.GetID(), run.GetRunID()))
	fmt.Println(run.GetID(), err)
	for _, t := range st.Transitions { fmt.Println("  ", t.At.Format("05.000"), t.Phase, t.Message) }
	for _, m := range st.Messages { fmt.Println("  msg", m.At.Format("05.000"), m.Name, m.Effect) }
}
var _ = testing.Short
