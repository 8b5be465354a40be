package provisioner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnsOf(t *testing.T) {
	for name, test := range map[string]struct {
		definitions string
		want        []column
	}{
		"Postal's": {
			PostalSchema().RawColumns,
			[]column{need("id", number), need("data", binary), need("next", number)},
		},
		"quoted": {
			"`a,``b (c` varchar(10) DEFAULT 'x,y)', `KEY` decimal(10,2)",
			[]column{need("a,`b (c", text), need("KEY", number)},
		},
		"keys and constraints": {
			"id INT, primary key(id), UNIQUE KEY u (id), key(id), INDEX i (id), CONSTRAINT c CHECK (id > 0), CHECK(id<9), FULLTEXT(id), FOREIGN KEY (id) REFERENCES t (id)",
			[]column{need("id", number)},
		},
		"white space": {"\n\tid\tBIGINT(20) unsigned ,\n at\n datetime(6)\n", []column{need("id", number), need("at", dateTime)}},
		"other types": {"a uuid, b timestamp, c", []column{need("a"), need("b"), need("c")}},
		"none":        {"", nil},
		"unbalanced":  {"`a int, b int", nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, columnsOf(test.definitions)) })
	}
}

func FuzzColumnsOf(f *testing.F) {
	for _, definitions := range []string{PostalSchema().RawColumns, "`a,``b` varchar(10) DEFAULT 'x,y)'", "primary key(id", "`", "'", "(", ")", ",", "\xff`ü` int"} {
		f.Add(definitions)
	}
	f.Fuzz(func(t *testing.T, definitions string) {
		for _, c := range columnsOf(definitions) {
			require.NotEmpty(t, c.name)
		}
	})
}
