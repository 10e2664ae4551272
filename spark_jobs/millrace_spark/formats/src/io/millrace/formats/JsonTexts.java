package io.millrace.formats;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import java.io.IOException;
import java.io.StringWriter;
import java.util.regex.Pattern;

/**
 * The values of JSON as texts: a string as it is, a number with the digits that it has there, anything else as JSON.
 *
 * <p>Spark's own functions read a number with a fraction as a double, and so lose digits.
 */
final class JsonTexts {

    /** Lenient where Spark's {@code from_json} is: single quotes and NaN are accepted. */
    static final JsonFactory FACTORY = JsonFactory.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .enable(JsonReadFeature.ALLOW_SINGLE_QUOTES)
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNumberLength(Integer.MAX_VALUE)
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .build();

    /** What a number begins with where those in texts have commas: it is not read like them. */
    private static final char MARK = '\uffff';

    /** The rule of {@code field_text} in Python, for names with other characters than letters, digits and _. */
    private static final Pattern NEEDS_QUOTES =
            Pattern.compile("(?sU)|`.*|.*\\..*|.+\\[\\d{1,9}]|\\w+\\(.*\\)|[\\s\\x1c-\\x1f].*|.*[\\s\\x1c-\\x1f]");

    private JsonTexts() {}

    /**
     * Returns the text of the parser's value, and moves the parser to the value's end; null for JSON's null.
     *
     * <p>A string with half a character (a surrogate without the other of its pair) stays as JSON writes it, with its
     * quotes: UTF-8 cannot hold it.
     */
    static String of(JsonParser parser) throws IOException {
        switch (parser.currentToken()) {
            case VALUE_NULL:
                return null;
            case START_OBJECT:
            case START_ARRAY:
                return json(parser);
            default:
                return isHalf(parser) ? json(parser) : parser.getText();
        }
    }

    /** Returns what {@code of} returns, a number with its mark; another text that begins with the mark, with one more. */
    static String marked(JsonParser parser) throws IOException {
        String text = of(parser);
        boolean isMarked = parser.currentToken().isNumeric() || text != null && text.indexOf(MARK) == 0;
        return isMarked ? MARK + text : text;
    }

    /** Returns what {@code of} returned of the value of which {@code marked} has returned a text. */
    static String unmarked(String marked) {
        return marked != null && marked.indexOf(MARK) == 0 ? marked.substring(1) : marked;
    }

    /** Returns the name of a field as a step of a path: in backticks, if it could mean something else. */
    static String step(String name) {
        boolean isPlain = !name.isEmpty() && name.chars().allMatch(each -> each == '_' || Character.isLetterOrDigit(each));
        return isPlain || !NEEDS_QUOTES.matcher(name).matches() ? name : "`" + name.replace("`", "``") + "`";
    }

    /** Returns whether the parser's value is a string that UTF-8 cannot hold. */
    static boolean isHalf(JsonParser parser) throws IOException {
        return parser.currentToken() == JsonToken.VALUE_STRING && isHalf(parser.getText());
    }

    /** Returns whether UTF-8 cannot hold a text. */
    static boolean isHalf(String text) {
        return half(text, 0) >= 0;
    }

    private static String json(JsonParser parser) throws IOException {
        StringWriter out = new StringWriter();
        try (JsonGenerator generator = FACTORY.createGenerator(out)) {
            int depth = 0;
            do {
                JsonToken token = parser.currentToken();
                depth += token.isStructStart() ? 1 : token.isStructEnd() ? -1 : 0;
                if (token.isNumeric() && !parser.isNaN()) {
                    generator.writeNumber(parser.getText());
                } else {
                    generator.copyCurrentEvent(parser);
                }
            } while (depth > 0 && parser.nextToken() != null);
        }
        return withEscapes(out.toString());
    }

    private static String withEscapes(String json) {
        StringBuilder escaped = new StringBuilder();
        int start = 0;
        for (int at = half(json, 0); at >= 0; at = half(json, start)) {
            escaped.append(json, start, at).append(String.format("\\u%04x", (int) json.charAt(at)));
            start = at + 1;
        }
        return start == 0 ? json : escaped.append(json, start, json.length()).toString();
    }

    /** Returns the place of the first half character from a place on; -1 if there is none. */
    private static int half(String text, int from) {
        for (int at = from; at < text.length(); at++) {
            if (Character.isSurrogate(text.charAt(at))) {
                if (Character.charCount(text.codePointAt(at)) == 1) {
                    return at;
                }
                at++;
            }
        }
        return -1;
    }
}
