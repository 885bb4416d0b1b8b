package invocation

import "golang.org/x/sync/errgroup"

// Each does something with each of some things, a few at a time. It returns the results of those that succeed, and the errors of the others,
// both in the order of the things.
func Each[T, R any](all []T, atOnce int, do func(T) (R, error)) (results []R, failures []error) {
	found, errs := make([]R, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, one := range all {
		group.Go(func() error {
			found[i], errs[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // what failed is in errs
	results = []R{}
	for i, err := range errs {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		results = append(results, found[i])
	}
	return results, failures
}
