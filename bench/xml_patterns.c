/* The time that libxml2's streaming patterns take for XML documents: bench/xml_paths.py compiles and runs this.
 *
 *     xml_patterns ROUNDS PATTERNS DOCUMENT...
 *
 * PATTERNS has a pattern a line. For each document it prints how many patterns matched, and the fewest
 * microseconds of ROUNDS: for reading alone, and for reading with all patterns. */

#include <libxml/pattern.h>
#include <libxml/xmlreader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * time.tv_sec + 1e-3 * time.tv_nsec;
}

static char *contents(const char *name, size_t *length) {
    FILE *file = fopen(name, "rb");
    if (file == NULL) { perror(name); exit(1); }
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    if (fread(text, 1, *length, file) != *length) { perror(name); exit(1); }
    text[*length] = 0;
    fclose(file);
    return text;
}

/* Reads a document; with patterns, says how many of them match. */
static long run(const char *text, size_t length, xmlPatternPtr *patterns, long count, char *matched) {
    xmlStreamCtxtPtr *streams = malloc((count + 1) * sizeof *streams);
    long found = 0;
    memset(matched, 0, count + 1);
    for (long at = 0; at < count; at++) {
        streams[at] = xmlPatternGetStreamCtxt(patterns[at]);
        xmlStreamPush(streams[at], NULL, NULL);
    }
    xmlTextReaderPtr reader = xmlReaderForMemory(text, length, NULL, NULL, 0);
    while (xmlTextReaderRead(reader) == 1) {
        int type = xmlTextReaderNodeType(reader);
        if (type == XML_READER_TYPE_ELEMENT) {
            const xmlChar *name = xmlTextReaderConstLocalName(reader);
            const xmlChar *namespace = xmlTextReaderConstNamespaceUri(reader);
            for (long at = 0; at < count; at++)
                if (xmlStreamPush(streams[at], name, namespace) == 1 && !matched[at]) {
                    matched[at] = 1;
                    found++;
                }
        }
        if (type == XML_READER_TYPE_END_ELEMENT
            || (type == XML_READER_TYPE_ELEMENT && xmlTextReaderIsEmptyElement(reader)))
            for (long at = 0; at < count; at++) xmlStreamPop(streams[at]);
    }
    xmlFreeTextReader(reader);
    for (long at = 0; at < count; at++) xmlFreeStreamCtxt(streams[at]);
    free(streams);
    return found;
}

int main(int argc, char **argv) {
    size_t length;
    long rounds = atol(argv[1]), count = 0;
    char *lines = contents(argv[2], &length);
    xmlPatternPtr *patterns = malloc((length + 1) * sizeof *patterns);
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        patterns[count] = xmlPatterncompile((const xmlChar *)line, NULL, 0, NULL);
        if (patterns[count] == NULL) { fprintf(stderr, "no pattern: %s\n", line); return 1; }
        count++;
    }
    char *matched = malloc(count + 1);
    for (int file = 3; file < argc; file++) {
        char *text = contents(argv[file], &length);
        double reading = 1e300, matching = 1e300;
        long found = 0;
        for (long round = 0; round < rounds; round++) {
            double started = now();
            run(text, length, patterns, 0, matched);
            double middle = now();
            found = run(text, length, patterns, count, matched);
            double ended = now();
            if (middle - started < reading) reading = middle - started;
            if (ended - middle < matching) matching = ended - middle;
        }
        printf("%ld %.3f %.3f\n", found, reading, matching);
        free(text);
    }
    return 0;
}
