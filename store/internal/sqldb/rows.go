package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Querier is a pool or a connection.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Each visits the rows of a statement, and waits for its end.
func Each(ctx context.Context, db Querier, visit func(rows *sql.Rows) error, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := visit(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// On calls a function with the driver's connection of a pool, which nobody else uses meanwhile.
func On[C any](ctx context.Context, db *sql.DB, do func(own C) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.Raw(func(own any) error { return do(own.(C)) })
}

// Texts are the rows of a statement as texts, and close them. NULL is empty.
func Texts(found driver.Rows) ([][]string, error) {
	var all [][]string
	into := make([]driver.Value, len(found.Columns()))
	for {
		if err := found.Next(into); errors.Is(err, io.EOF) {
			return all, found.Close()
		} else if err != nil {
			return nil, errors.Join(err, found.Close())
		}
		row := make([]string, len(into))
		for i, v := range into {
			switch v := v.(type) {
			case []byte:
				row[i] = string(v)
			case nil:
			default:
				row[i] = strings.TrimSpace(fmt.Sprint(v))
			}
		}
		all = append(all, row)
	}
}

// Afterwards is the error of what follows an insert. Whatever it means by itself, the record may be stored.
func Afterwards(err error) error {
	return fmt.Errorf("what was inserted can't be read: %s", err.Error())
}
