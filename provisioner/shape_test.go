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
		"quoted otherwise": {
			`"a,""b (c" text DEFAULT 'it\'s, so', b int COMMENT "\", x (", c int COMMENT 'it''s, too', d int COMMENT '\\'`,
			[]column{need(`a,"b (c`, text), need("b", number), need("c", number), need("d", number)},
		},
		"comments": {
			"id int, -- the key, it's (\n#, a\n data/*, */blob -- , b\n,/**/--\n c int /*!50000 , d int */",
			[]column{need("id", number), need("data", binary), need("c", number)},
		},
		"what only looks like one": {
			"a int DEFAULT (5--1), `-- b, c` int, d text DEFAULT '/*', `period` int, e int DEFAULT '#,'",
			[]column{need("a", number), need("-- b, c", number), need("d", text), need("period", number), need("e", number)},
		},
		"bytes in truth": {"a char byte, b text CHARACTER SET binary", []column{need("a", text, binary), need("b", text, binary)}},
		"no columns":     {"PERIOD FOR app (a, b), VECTOR INDEX v (c)", nil},
		"white space":    {"\n\tid\tBIGINT(20) unsigned ,\n at\n datetime(6)\n", []column{need("id", number), need("at", dateTime)}},
		"other types":    {"a uuid, b timestamp, c", []column{need("a"), need("b"), need("c")}},
		"none":           {"", nil},
		"unbalanced":     {"`a int, b int", nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, columnsOf(test.definitions)) })
	}
}

func FuzzColumnsOf(f *testing.F) {
	for _, definitions := range []string{
		PostalSchema().RawColumns, "`a,``b` varchar(10) DEFAULT 'x,y)'", "primary key(id", "`", "'", "(", ")", ",", "\xff`ü` int",
		"a int, -- b, c\n d int", "a/*, */int #,\n", `"a,""b" int DEFAULT 'it\'s, so'`, "a char byte, PERIOD FOR a (b)", "--", "/*", `'\`,
	} {
		f.Add(definitions)
	}
	f.Fuzz(func(t *testing.T, definitions string) {
		for _, c := range columnsOf(definitions) {
			require.NotEmpty(t, c.name)
		}
	})
}
