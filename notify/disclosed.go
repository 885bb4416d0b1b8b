package notify

import "drydock/config/secret"

// disclosed are the secrets that one delivery has read, so that they can be taken out of what it reports.
type disclosed struct{ secret.Redactor }

// read reads a secret and remembers it. The error says which field it is of.
func (d *disclosed) read(field string, s secret.Value) (string, error) {
	value, err := d.Read(s)
	if err != nil {
		return "", &failure{err: err, doing: field}
	}
	return value, nil
}

// address reads a URL; one that is not secret needs no hiding.
func (d *disclosed) address(field string, a Address) (string, error) {
	if a.Secret.IsZero() {
		return a.URL, nil
	}
	return d.read(field, a.Secret)
}
