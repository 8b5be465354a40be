package provisioner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

// One answer that was late, on a machine that was busy, doesn't make the question a costly one.
func TestPendingIsAskedAgainAfterALateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := []time.Duration{time.Millisecond, time.Second, 0}
		asked := 0
		q := pending{ask: func(context.Context) ([]int64, error) {
			time.Sleep(delays[asked])
			asked++
			return nil, nil
		}}
		for range delays {
			require.NoError(t, q.refresh(t.Context()))
		}
		require.Equal(t, len(delays), asked)
	})
}

func TestNextBatch(t *testing.T) {
	const target = 50 * time.Millisecond
	for name, test := range map[string]struct {
		rows, size int
		took       time.Duration
		next       int
	}{
		"just right":                 {1000, 1000, target, 1000},
		"twice as fast":              {1000, 1000, target / 2, 2000},
		"twice as slow":              {1000, 1000, 2 * target, 500},
		"grows no faster":            {1000, 1000, time.Millisecond, 4000},
		"not measurably long":        {1000, 1000, 0, 4000},
		"shrinks at once":            {10_000, 10_000, 100 * target, 100},
		"no smaller than the least":  {100, 100, time.Hour, 100},
		"a smaller one was fast":     {1000, 10, time.Millisecond, 1000},
		"a smaller one was slow":     {1000, 500, 2 * target, 250},
		"no larger than the largest": {19_000, 19_000, target / 4, 20_000},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.next, nextBatch(test.rows, test.size, test.took, target)) })
	}
}

func TestChoose(t *testing.T) {
	rows := func(ids ...int64) (list []row) {
		for _, id := range ids {
			list = append(list, row{id, goes})
		}
		return list
	}
	kept := func(list []row, ids ...int64) []row {
		for i := range list {
			if slices.Contains(ids, list[i].id) {
				list[i].fate = protected
			}
		}
		return list
	}
	long := make([]row, 0, 2*maxSpans)
	for id := range int64(2 * maxSpans) {
		long = append(long, row{100 * id, goes})
	}
	for name, test := range map[string]struct {
		rows     []row
		limit    int
		pending  []int64
		failures int
		first    int64
		spans    []span
		goes     int
		used     int
	}{
		"one range":                        {rows: rows(5, 6, 7), spans: []span{{5, 7}}, goes: 3, used: 3},
		"small gaps":                       {rows: rows(5, 10, 26), spans: []span{{5, 26}}, goes: 3, used: 3},
		"a large gap":                      {rows: rows(5, 22), spans: []span{{5, 5}, {22, 22}}, goes: 2, used: 2},
		"around one that is kept":          {rows: kept(rows(5, 6, 7, 8), 6), spans: []span{{5, 5}, {7, 8}}, goes: 3, used: 4},
		"around one that is pending":       {rows: rows(5, 6, 7, 8), pending: []int64{7}, spans: []span{{5, 6}, {8, 8}}, goes: 3, used: 4},
		"around a pending one not read":    {rows: rows(5, 10), pending: []int64{7}, spans: []span{{5, 5}, {10, 10}}, goes: 2, used: 2},
		"nothing goes":                     {rows: kept(rows(5, 6), 5, 6), used: 2},
		"the limit":                        {rows: rows(1, 2, 3, 4), limit: 3, spans: []span{{1, 3}}, goes: 3, used: 3},
		"kept ones behind the limit":       {rows: kept(rows(1, 2, 3, 4), 3, 4), limit: 2, spans: []span{{1, 2}}, goes: 2, used: 4},
		"each alone after a failure":       {rows: rows(5, 6), failures: 1, first: 5, spans: []span{{5, 5}, {6, 6}}, goes: 2, used: 2},
		"ranges again when others went on": {rows: rows(5, 6), failures: 1, first: 4, spans: []span{{5, 6}}, goes: 2, used: 2},
		"no more spans than a list takes":  {rows: long, limit: len(long), goes: maxSpans, used: maxSpans},
	} {
		t.Run(name, func(t *testing.T) {
			if test.limit == 0 {
				test.limit = 100
			}
			b := &batches{rows: test.limit, pending: pending{ids: test.pending}, failures: test.failures, first: test.first}
			s := b.choose(test.rows, maxGap)
			if test.spans != nil {
				require.Equal(t, test.spans, s.spans)
			}
			require.Equal(t, test.goes, s.goes)
			require.Equal(t, test.used, s.used)
		})
	}
}

func TestWhere(t *testing.T) {
	require.Equal(t, "(`id` BETWEEN 1 AND 4 OR `id` BETWEEN 8 AND 8 OR `id` IN (5,7,9,-2))", where("`id`", []span{{1, 5}, {7, 7}, {8, 9}, {-2, -2}}))
	require.Equal(t, "(`id` IN (7))", where("`id`", []span{{7, 7}}))
}

// Which messages are pending is asked again before each batch where that costs little, and every few seconds where it costs much.
func TestPendingIsAskedAgain(t *testing.T) {
	for name, test := range map[string]struct{ cost, every time.Duration }{
		"at no cost":     {0, 0},
		"at little cost": {10 * time.Millisecond, 0},
		"at some cost":   {20 * time.Millisecond, time.Second},
		"at a price":     {time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				q := pending{ask: func(context.Context) ([]int64, error) {
					asked++
					time.Sleep(test.cost)
					return []int64{9, 3, 3}, nil
				}}
				require.NoError(t, q.refresh(t.Context()))
				require.True(t, q.any(3, 3) && q.any(4, 9))
				require.False(t, q.any(4, 8))
				if test.every > 0 {
					time.Sleep(test.every - time.Nanosecond)
					require.NoError(t, q.refresh(t.Context()))
					require.Equal(t, 1, asked)
					time.Sleep(time.Nanosecond)
				}
				require.NoError(t, q.refresh(t.Context()))
				require.Equal(t, 2, asked)
			})
		})
	}
}

func TestPauseIsAShareOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		require.NoError(t, sleep(t.Context(), 30*time.Millisecond))
		require.Equal(t, 30*time.Millisecond, time.Since(started))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, sleep(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 40*time.Millisecond, time.Since(started))
		require.ErrorIs(t, sleep(ctx, 0), context.DeadlineExceeded)
	})
}

func TestRetriesAreBounded(t *testing.T) {
	deadlock, lost := &mysql.MySQLError{Number: mysqlerr.Deadlock}, errors.Join(retention.ErrStop, errDecideAgain)
	for name, test := range map[string]struct {
		err, last error
		retries   int
	}{
		"rows that change each time": {errDecideAgain, errUnsettled, maxRetries},
		"deadlocks":                  {deadlock, deadlock, maxRetries},
		"a connection that breaks":   {mysql.ErrInvalidConn, mysql.ErrInvalidConn, maxLost},
		"what the guard says":        {lost, lost, 0},
		"what no rule knows":         {errors.ErrUnsupported, errors.ErrUnsupported, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &batches{}
				for range test.retries {
					require.Equal(t, errDecideAgain, b.retry(t.Context(), test.err))
				}
				require.Equal(t, test.last, b.retry(t.Context(), test.err))
			})
		})
	}
}
